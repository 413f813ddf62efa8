#pragma once

#include <fastweights/algorithms/checked.hpp>
#include <fastweights/core/owned.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <string>
#include <vector>

#include "support/catch.hpp"

/// \file
/// Memories with inputs that checked steps and scans accept, to be made wrong one number at a time.

namespace checked_cases {

using Catch::Matchers::ContainsSubstring;
using fw::Dynamic;
using fw::Index;

inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();

using fw::detail::Leaf;

// The arrays of a record.
template <class R> std::vector<Leaf> leaves_of(R& record) {
  std::vector<Leaf> leaves;
  fw::detail::visit_all_leaves(
      [&](const Leaf* leaf, const fw::detail::LeafPath&) { leaves.push_back(*leaf); }, record);
  return leaves;
}

// Fills a member with numbers in the range of its role. Keys and distributions have sum 1 and so at
// most length 1.
inline void fill(const Leaf& leaf, fw::Role role) {
  const bool sums_to_1 = role == fw::Role::key || role == fw::Role::distribution;
  const double sum = static_cast<double>(leaf.rows * (leaf.rows + 1) / 2);
  for (Index i = 0; i < leaf.size(); ++i) {
    const auto number = static_cast<double>(i % leaf.rows + 1);
    leaf.store(i, sums_to_1 ? number / sum : role == fw::Role::value ? -3 * number : 0.5);
  }
}
template <class Owned, class S, class E> Owned good_inputs(const E& extents, Index steps) {
  auto record = fw::owned_sequence<Owned>(extents, steps, S(0));
  std::size_t i = 0;
  for (const Leaf& leaf : leaves_of(record)) fill(leaf, Owned::roles[i++]);
  return record;
}

inline std::string bytes_of(const std::vector<Leaf>& leaves) {
  std::string bytes;
  for (const Leaf& leaf : leaves)
    bytes.append(static_cast<const char*>(leaf.data),
                 static_cast<std::size_t>(leaf.size()) * leaf.width);
  return bytes;
}

// A memory with inputs for some tokens, whatever its type is.
struct AnyCase {
  static constexpr Index steps = 9;
  virtual ~AnyCase() = default;
  virtual void scan() = 0;
  virtual void step(Index t) = 0;
  virtual void write(Index t) = 0;
  std::string rule;
  double large = 0;  // too large for an input
  std::vector<Leaf> written, read, state_leaves, output_leaves;
  std::vector<std::string_view> written_names, read_names;
};

template <class M> struct Case : AnyCase {
  using S = typename M::Scalar;
  M memory;
  fw::OwnedWrites<M> inputs = good_inputs<fw::OwnedWrites<M>, S>(memory.signature().write(), steps);
  fw::OwnedReads<M> queries = good_inputs<fw::OwnedReads<M>, S>(memory.signature().read(), steps);
  fw::OwnedOuts<M> outputs =
      fw::owned_sequence<fw::OwnedOuts<M>>(memory.signature().out(), steps, S(7));
  fw::StateOf<M> state = fw::initial_state(memory);
  fw::WriteSequence<M> in = fw::view<fw::WriteSequence<M>>(inputs);
  fw::ReadSequence<M> query = fw::view<fw::ReadSequence<M>>(queries);
  fw::OutSequence<M> out = fw::view<fw::OutSequence<M>>(outputs);

  explicit Case(M m) : memory(std::move(m)) {
    rule = M::name;
    large = std::is_same_v<S, float> ? 3e15 : 1e151;
    written = leaves_of(inputs);
    read = leaves_of(queries);
    state_leaves = leaves_of(state);
    output_leaves = leaves_of(outputs);
    written_names.assign(decltype(inputs)::names.begin(), decltype(inputs)::names.end());
    read_names.assign(decltype(queries)::names.begin(), decltype(queries)::names.end());
    scan();
  }
  Case(const Case&) = delete;

  void scan() override { fw::checked_scan(memory, state, in, query, out); }
  void step(Index t) override {
    const auto sizes = memory.signature();
    using fw::detail::token_at;
    fw::checked_step(memory, state, token_at<fw::WriteToken<M>>(in, sizes.write(), t),
                     token_at<fw::ReadToken<M>>(query, sizes.read(), t),
                     token_at<fw::OutToken<M>>(out, sizes.out(), t));
  }
  void write(Index t) override {
    fw::checked_write(memory, state,
                      fw::detail::token_at<fw::WriteToken<M>>(in, memory.signature().write(), t));
  }
};

// Sets one entry of a member, calls scan, step and write, and restores the entry. They must refuse
// it with the text, and change nothing.
inline void refuses(AnyCase& c, const Leaf& member, Index row, Index column, double bad,
                    const std::string& text, bool is_written = true) {
  const Index token = column / (member.cols / c.steps), at = row + column * member.rows;
  const std::string state = bytes_of(c.state_leaves), outputs = bytes_of(c.output_leaves);
  std::string before(static_cast<const char*>(member.entry(at)), member.width);
  member.store(at, bad);
  const std::string numbered = c.rule + ": token " + std::to_string(token) + ": ";
  CHECK_THROWS_WITH(c.scan(), ContainsSubstring(numbered) && ContainsSubstring(text));
  CHECK_THROWS_WITH(c.step(token), ContainsSubstring(c.rule + ": ") && ContainsSubstring(text) &&
                                       !ContainsSubstring("token "));
  if (is_written) CHECK_THROWS_WITH(c.write(token), ContainsSubstring(text));
  CHECK(bytes_of(c.state_leaves) == state);
  CHECK(bytes_of(c.output_leaves) == outputs);
  std::copy(before.begin(), before.end(), static_cast<char*>(member.entry(at)));
}
template <class Matrix>
requires requires(Matrix& m) { m.colStride(); }
void refuses(AnyCase& c, Matrix& member, Index row, Index column, double bad,
             const std::string& text) {
  refuses(c, fw::detail::leaf_of<Matrix>(&member), row, column, bad, text);
}

// Numbers that no member of any memory may have.
inline void refuses_numbers(AnyCase&& c) {
  const auto each = [&](const Leaf& member, std::string_view name, bool is_written) {
    for (const double bad : {not_a_number, infinity, -infinity, c.large, -c.large})
      for (const Index column : {Index(0), member.cols - 1})
        refuses(c, member, member.rows - 1, column, bad, std::string(name), is_written);
  };
  for (std::size_t i = 0; i < c.written.size(); ++i) each(c.written[i], c.written_names[i], true);
  for (std::size_t i = 0; i < c.read.size(); ++i) each(c.read[i], c.read_names[i], false);
  c.scan();
  for (Index t = 0; t < c.steps; ++t) c.step(t);
  for (const Leaf& leaf : c.state_leaves) {
    const Index n = leaf.size();
    CHECK(fw::detail::first_outside({leaf.data, n, 1, n, leaf.scalar}, {}) == -1);
  }
}

template <class S>
using Kimi = fw::GatedDeltaRule<S, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>;
template <class S>
using RowDelta = fw::DeltaRule<S, Dynamic, Dynamic, fw::NoNormaliser, fw::KeyValueVectorBeta>;
template <class S>
using NormalisedDelta = fw::DeltaRule<S, Dynamic, Dynamic, fw::AttentionNormaliser<S>>;

}  // namespace checked_cases
