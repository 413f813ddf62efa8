#pragma once

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "tasks/task_sequence.hpp"

/// \file
/// The code execution task of Fan et al. 2020, arXiv 2002.09402, as generated for Irie et al. 2021,
/// arXiv 2106.06295, section 4.1: a model reads programs of a few variables token by token and
/// answers with the output of their `print` statements.
///
///     x = 4 ; x ++ ; if x > 2 : y = 1 ; print y ;
///
/// The answer is at the `;` of every print: the value, or "nothing" if a condition does not hold.
/// The authors' models also have to answer "nothing" at all other tokens.

inline constexpr std::array<std::string_view, 24> code_words{
    "x", "y", "z", "a", "b", "0", "1", "2", "3",  "4",  "5",     "6",
    "7", "8", "9", "=", ";", ":", "<", ">", "++", "--", "print", "if"};
inline constexpr int code_digit = 5, code_assign = 15, code_end = 16, code_then = 17,
                     code_less = 18, code_greater = 19, code_increment = 20, code_decrement = 21,
                     code_print = 22, code_if = 23;

/// A step that would leave this range is made in the other direction.
inline constexpr int code_lowest = -8, code_highest = 16;
/// The answer to a value is its difference to code_lowest.
inline constexpr int code_nothing = code_highest - code_lowest + 1;  ///< nothing is printed
inline constexpr int code_answers = code_nothing + 1;

struct CodeExecutionOptions {
  int variables = 3;  ///< up to 5
  long statements = 100;
  /// As in the sequences generated for the paper: an assignment behind a true `if` does not change
  /// a variable that already has a value.
  bool keeps_assigned = true;
};

/// Runs a program while it writes it.
class CodeWriter {
 public:
  CodeWriter(const CodeExecutionOptions& o, fw::Random& random) : options_(o), random_(random) {
    if (o.variables < 1 || o.variables > 5)
      throw std::invalid_argument("code execution: " + std::to_string(o.variables) +
                                  " variables, 1 to 5 expected");
    if (o.statements < 2)
      throw std::invalid_argument("code execution: " + std::to_string(o.statements) +
                                  " statements, at least 2 expected");
  }

  /// The first statement assigns, the last prints.
  TaskSequence write() {
    assign(true, false);
    for (long i = 2; i < options_.statements; ++i) {
      const int kind = below(4);
      if (kind == 3)
        conditional();
      else
        statement(kind, true, false);
    }
    print(true);
    return std::move(sequence_);
  }

 private:
  int below(int n) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(n))); }
  int& value_of(int variable) { return values_[static_cast<std::size_t>(variable)]; }
  bool assigned(int variable) const { return std::ranges::find(known_, variable) != known_.end(); }
  int some_known() { return known_[random_.below(known_.size())]; }

  // `runs`: whether the statement is executed.
  void statement(int kind, bool runs, bool conditional) {
    if (kind == 0) assign(runs, conditional);
    if (kind == 1) step(runs);
    if (kind == 2) print(runs);
  }

  void assign(bool runs, bool conditional) {
    const int variable = below(options_.variables), value = below(10);
    for (const int token : {variable, code_assign, code_digit + value, code_end})
      sequence_.add(token);
    if (!runs || (conditional && options_.keeps_assigned && assigned(variable))) return;
    if (!assigned(variable)) known_.push_back(variable);
    value_of(variable) = value;
  }

  void step(bool runs) {
    const int variable = some_known(), value = value_of(variable);
    const bool up = below(2) == 0 ? value < code_highest : value == code_lowest;
    for (const int token : {variable, up ? code_increment : code_decrement, code_end})
      sequence_.add(token);
    if (runs) value_of(variable) += up ? 1 : -1;
  }

  void print(bool runs) {
    const int variable = some_known();
    sequence_.add(code_print);
    sequence_.add(variable);
    sequence_.add(code_end, runs ? value_of(variable) - code_lowest : code_nothing);
  }

  void conditional() {
    const bool greater = below(2) == 1;
    const int variable = some_known(), bound = below(10);
    for (const int token :
         {code_if, variable, greater ? code_greater : code_less, code_digit + bound, code_then})
      sequence_.add(token);
    const bool holds = greater ? value_of(variable) > bound : value_of(variable) < bound;
    statement(below(3), holds, true);
  }

  CodeExecutionOptions options_;
  fw::Random& random_;
  TaskSequence sequence_;
  std::vector<int> known_;  // in the order of their first assignment
  std::array<int, 5> values_{};
};

/// Program `index` of a seed.
inline TaskSequence draw_program(const CodeExecutionOptions& o, std::uint64_t seed,
                                 std::uint64_t index) {
  fw::Random random = task_random(seed, index);
  return CodeWriter(o, random).write();
}

/// The program as text, a space after every word.
inline std::string code_text(const TaskSequence& sequence) {
  std::string text;
  for (const int token : sequence.input)
    text += std::string(code_words.at(static_cast<std::size_t>(token))) + " ";
  return text;
}
/// The answers as text: a number, or `_` where there is no output or no answer.
inline std::string code_answer_text(const TaskSequence& sequence) {
  std::string text;
  for (const int target : sequence.targets)
    text += (target == no_answer || target == code_nothing ? "_"
                                                           : std::to_string(target + code_lowest)) +
            " ";
  return text;
}
