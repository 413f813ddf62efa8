#pragma once

#include <fastweights/core/signatures.hpp>
#include <map>
#include <string>
#include <vector>

/// \file
/// The options of a memory that is made by name.

namespace fw::inline FASTWEIGHTS_ABI {

/// Sizes and hyperparameters by name:
///
///     {.key_size = 64, .more = {{"decay", 0.9}}}
struct MemoryOptions {
  Index key_size = 0;                       ///< d_k; d of a memory with one size
  Index value_size = 0;                     ///< d_v; 0 for as large as keys
  std::map<std::string, double> more = {};  ///< hyperparameters; those left out have defaults
};

/// The values that a hyperparameter may have, which is written as a double in any case.
enum class OptionKind {
  number,   ///< any that the memory accepts
  integer,  ///< whole numbers
  flag      ///< 0 or 1
};

/// A hyperparameter of a memory that is made by name.
struct MemoryOption {
  std::string name;                      ///< as MemoryOptions::more has it
  double value = 0;                      ///< its default, which may depend on the sizes
  OptionKind kind = OptionKind::number;  ///< its type
};

/// Facts of a memory in the table, whatever its type.
struct MemoryFacts {
  bool positive_keys = false;  ///< its keys and queries must be positive, as after a feature map
  bool square = false;         ///< it has one size: values are as large as keys
};

namespace detail {

// Reads options for one memory and learns which ones it has.
class OptionReader {
 public:
  OptionReader(std::string_view memory, const MemoryOptions& given)
      : memory_(memory), given_(given) {}

  Sizes<> sizes() const {
    return {given_.key_size, given_.value_size == 0 ? given_.key_size : given_.value_size};
  }
  // Reader of a memory with one size.
  Index size() const {
    if (given_.value_size != 0 && given_.value_size != given_.key_size)
      throw_invalid({memory_, ": value_size is ", std::to_string(given_.value_size),
                     ", expected key_size, ", std::to_string(given_.key_size)});
    return given_.key_size;
  }
  double number(const char* name, double otherwise) {
    known_.push_back({name, otherwise, OptionKind::number});
    const auto found = given_.more.find(name);
    return found == given_.more.end() ? otherwise : found->second;
  }
  Index integer(const char* name, Index otherwise) {
    const double given = number(name, static_cast<double>(otherwise));
    known_.back().kind = OptionKind::integer;
    if (!(given >= -0x1p53 && given <= 0x1p53) || given != static_cast<double>(Index(given)))
      throw_invalid({memory_, ": ", name, " is ", number_text(given), ", expected a whole number"});
    return static_cast<Index>(given);
  }
  bool flag(const char* name, bool otherwise) {
    const Index given = integer(name, otherwise ? 1 : 0);
    known_.back().kind = OptionKind::flag;
    if (given != 0 && given != 1)
      throw_invalid({memory_, ": ", name, " is ", std::to_string(given), ", expected 0 or 1"});
    return given == 1;
  }

  const std::vector<MemoryOption>& known() const { return known_; }
  [[noreturn]] void fail(const std::string& what) const { throw_invalid({memory_, ": ", what}); }
  // Throws if an option was given that the memory did not ask for.
  void check_unknown() const;

 private:
  std::string_view memory_;
  const MemoryOptions& given_;
  std::vector<MemoryOption> known_;
};

}  // namespace detail

}  // namespace fw
