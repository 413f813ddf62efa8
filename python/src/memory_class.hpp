#pragma once

#include <fastweights/any_memory/options.hpp>
#include <optional>
#include <string>
#include <vector>

#include "parameters.hpp"

/// \file
/// The class of Python that a memory of the table gets.

namespace fw::python {

using Eigen::Index;

/// An input or output by name: its rows and columns for one token.
struct Member {
  std::string name;
  Index rows = 1;
  Index width = 1;         ///< tokens of the array for one token of the sequence
  bool is_number = false;  ///< its array has no axis of rows
  bool chunks = false;     ///< a token of the sequence is a chunk of any number of tokens
};

/// A hyperparameter of a constructor.
struct Setting {
  std::string name;             ///< in Python
  std::string option;           ///< in the table
  std::optional<double> value;  ///< its default; none if it depends on the sizes
  OptionKind kind = OptionKind::number;
};

/// Facts that all memories of one name share.
struct MemoryClass {
  std::string name;
  std::vector<Setting> settings;
  /// The inputs of a read, then those of a write. A name that is in both, such as the key of Rwkv6,
  /// is one input. Sizes are those of an example.
  std::vector<Member> inputs;
  std::vector<std::size_t> read_with, written;  ///< the inputs that these are
  bool has_double = false;                      ///< a few memories are in float32 only
  Parameters init, scan, step, backward;        ///< of the methods
  std::string doc;
};

/// Reads the table. Throws std::invalid_argument for a name that is not in it.
MemoryClass make_memory_class(const std::string& name);

/// Equation and source of a memory; empty if nobody wrote them.
std::string_view text_of_memory(std::string_view name);

}  // namespace fw::python
