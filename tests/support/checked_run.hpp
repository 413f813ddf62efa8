#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/accepted_tokens.hpp"
#include "support/catch.hpp"

/// \file
/// Tokens that are made wrong one number at a time, for the tests of checked calls.

namespace laws {

/// One entry of a member of what a run writes, or of what it reads with.
struct Entry {
  std::string_view member;
  Index row = 0, column = 0;
  bool is_query = false;
};

/// A memory with tokens that checked calls accept. With its first state.
template <class S> class CheckedRun : public Run<S> {
 public:
  static constexpr Index steps = 9;
  explicit CheckedRun(const Subject& subject) : Run<S>(subject, 0, 0, 1) {
    this->all = accepted_tokens(this->memory, steps);
  }

  void checked_scan() {
    this->memory.checked_scan(this->state, this->all.inputs.views(), this->all.queries.views(),
                              this->all.outputs.template views<S>());
  }
  void checked_step(Index t) {
    this->memory.checked_step(this->state, this->input(t), this->query(t), this->output(t));
  }
  void checked_write(Index t) { this->memory.checked_write(this->state, this->input(t)); }

  S& number(const Entry& e) {
    return (e.is_query ? this->all.queries : this->all.inputs)[e.member](e.row, e.column);
  }
  /// The state and the outputs, to the bit.
  std::string bytes() {
    std::string text;
    const std::array records{this->state.object(), fw::detail::object(this->all.outputs)};
    for (const fw::detail::Object& record : records)
      fw::detail::visit_leaves(&record, 1, [&](const fw::detail::Leaf* leaf, const auto&) {
        text.append(static_cast<const char*>(leaf->data),
                    static_cast<std::size_t>(leaf->size()) * leaf->width);
      });
    return text;
  }

  /// Makes one entry wrong for a scan, a step and, if it is written, a write. They must refuse it
  /// with the text, and change nothing.
  void refuses(const Entry& e, double bad, const std::string& text) {
    using Catch::Matchers::ContainsSubstring;
    const std::string before = bytes(), name = std::string(this->memory.name()) + ": ";
    const S good = std::exchange(number(e), static_cast<S>(bad));
    const fw::SignatureMember& m = member(e);
    const Index t = e.column / m.width;
    const std::string token = std::to_string(m.chunks ? e.column : t);  // a column of a chunk
    CHECK_THROWS_WITH(checked_scan(),
                      ContainsSubstring(name + "token " + token + ": ") && ContainsSubstring(text));
    CHECK_THROWS_WITH(checked_step(t), ContainsSubstring(name) && ContainsSubstring(text) &&
                                           !ContainsSubstring("token "));
    if (!e.is_query) CHECK_THROWS_WITH(checked_write(t), ContainsSubstring(text));
    CHECK(bytes() == before);
    number(e) = good;
  }

  /// Calls f(entry, member) for the last row of the first and of the last column of every member.
  template <class F> void for_each_entry(const F& f) const {
    for (const bool is_query : {false, true})
      for (const fw::SignatureMember& m : members(is_query))
        for (const Index column : {Index(0), m.width * steps - 1})
          if (m.rows > 0) f(Entry{m.name, m.rows - 1, column, is_query}, m);
  }

 private:
  std::span<const fw::SignatureMember> members(bool is_query) const {
    return is_query ? this->memory.read_with() : this->memory.written();
  }
  const fw::SignatureMember& member(const Entry& e) const {
    for (const fw::SignatureMember& m : members(e.is_query))
      if (m.name == e.member) return m;
    throw std::invalid_argument("no member of this name");
  }
};

}  // namespace laws
