#pragma once

#include <cmath>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/core/owned.hpp>
#include <fastweights/core/random.hpp>
#include <fastweights/core/signatures.hpp>
#include <limits>

/// \file
/// Sequences to try a memory on.

namespace fw::testing {

/// Everything a memory takes in `steps` steps, and room for what it gives.
template <Memory M> struct Sequences {
  OwnedWrites<M> inputs;
  OwnedReads<M> queries;
  OwnedOuts<M> outputs;  ///< NaN until something is written there
  static constexpr auto names = fw::names("inputs", "queries", "outputs");
};

namespace detail {

// One entry of a member of that role, whose arrays have `rows` rows.
inline double draw(Role role, Index rows, Random& random, bool positive) {
  const double u = random.uniform();
  if (role == Role::draw) return u;
  if (role == Role::decay) return 0.5 + 0.5 * u;
  const bool is_key = role == Role::key || role == Role::distribution;
  const double scale = is_key ? 1.0 / std::sqrt(static_cast<double>(rows)) : 1.0;
  return scale * (positive || role == Role::strength ? 0.05 + 0.95 * u : 2 * u - 1);
}

// Draws the entries of a record in double, in the order of its members and column by column.
template <class R, class E> void draw(R& record, const E& extents, Random& random, bool positive) {
  fw::detail::assert_roles<R>();
  std::size_t i = 0;
  for_each_member(
      [&](std::string_view, auto& array, const Extent& extent) {
        using S = typename std::remove_cvref_t<decltype(array)>::Scalar;
        const Role role = R::roles[i++];
        for (Index entry = 0; entry < array.size(); ++entry)
          array.data()[entry] = static_cast<S>(draw(role, extent.rows, random, positive));
      },
      record, extents);
}

}  // namespace detail

/// Draws entries uniformly from (−1, 1) for values, (0.05, 1) for write strengths and (0.5, 1) for
/// decays, and keys and queries as values over √d_k; with `positive`, keys, queries and values as
/// strengths, as feature maps give them. Draws are from [0, 1).
template <Memory M>
Sequences<M> random_sequences(const M& m, Index steps, Random& random, bool positive = false) {
  using S = typename M::Scalar;
  const auto signature = m.signature();
  Sequences<M> all{owned_sequence<OwnedWrites<M>>(signature.write(), steps, S(0)),
                   owned_sequence<OwnedReads<M>>(signature.read(), steps, S(0)),
                   owned_sequence<OwnedOuts<M>>(signature.out(), steps,
                                                S(std::numeric_limits<double>::quiet_NaN()))};
  detail::draw(all.inputs, signature.write(), random, positive);
  detail::draw(all.queries, signature.read(), random, positive);
  return all;
}

/// A state of m that has seen `steps` random tokens.
template <Memory M>
StateOf<M> used_state(const M& m, Index steps, Random& random, bool positive = false) {
  auto before = random_sequences(m, steps, random, positive);
  StateOf<M> state = initial_state(m);
  scan(m, state, view<WriteSequence<M>>(before.inputs), view<ReadSequence<M>>(before.queries),
       view<OutSequence<M>>(before.outputs));
  return state;
}

}  // namespace fw::testing
