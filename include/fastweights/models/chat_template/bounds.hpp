#pragma once

#include <fastweights/core/errors.hpp>
#include <string>
#include <string_view>
#include <utility>

/// \file
/// Bounds of what a chat template may cost, and the place of an error.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// Bounds of a template, which may be hostile.
struct Bounds {
  static constexpr std::size_t template_bytes = 1 << 20;  ///< of its text
  static constexpr int nesting = 128;      ///< levels of blocks and expressions in the text
  static constexpr int values = 64;        ///< levels of lists and dicts in a value
  static constexpr int active = 512;       ///< levels that are evaluated at a time, with macros
  static constexpr long steps = 1L << 24;  ///< evaluated nodes, entries and compared values
  static constexpr long made_bytes = 1L << 28;        ///< of texts and lists that are made, in all
  static constexpr std::size_t text_bytes = 1 << 24;  ///< of a text that is made
  static constexpr std::size_t output_bytes = 1 << 26;  ///< of the text that is rendered
};

/// Counts what a template costs, and throws std::invalid_argument with the template's name and the
/// line.
class Costs {
 public:
  /// `where` is what errors begin with.
  explicit Costs(std::string where) : where_(std::move(where)) {}

  /// Evaluates one level deeper as long as it lives.
  class Level {
   public:
    explicit Level(Costs& costs) : costs_(costs) {
      if (++costs_.active_ > Bounds::active)
        costs_.fail("more than " + std::to_string(Bounds::active) +
                    " levels are active, expected fewer blocks, expressions or calls of macros");
    }
    ~Level() { --costs_.active_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Costs& costs_;
  };

  void step(std::size_t count = 1) {
    if (count > static_cast<std::size_t>(Bounds::steps - steps_))
      fail("the template takes more than " + std::to_string(Bounds::steps) + " steps");
    steps_ += static_cast<long>(count);
  }
  /// Before a text or a list is made.
  void make(std::size_t bytes) {
    if (bytes > static_cast<std::size_t>(Bounds::made_bytes - made_))
      fail("the template makes more than " + std::to_string(Bounds::made_bytes) + " bytes");
    made_ += static_cast<long>(bytes);
    step(bytes / 64);
  }
  void at(int line) { line_ = line; }
  int line() const { return line_; }
  [[noreturn]] void fail(std::string_view what) const {
    fw::detail::throw_invalid({where_, ": line ", std::to_string(line_), ": ", what});
  }

 private:
  std::string where_;
  int line_ = 1, active_ = 0;
  long steps_ = 0, made_ = 0;
};

}  // namespace fw::models::chat
