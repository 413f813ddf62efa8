#pragma once

#include <cmath>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/core/leaves.hpp>
#include <fastweights/core/owned.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/math/random.hpp>
#include <limits>

/// \file
/// Random sequences and states for a memory.

namespace fw::inline FASTWEIGHTS_ABI::testing {

/// The inputs and queries of a memory over `steps` steps, and arrays for its outputs.
template <Memory M> struct Sequences {
  OwnedWrites<M> inputs;  ///< what is written
  OwnedReads<M> queries;  ///< what is read with
  OwnedOuts<M> outputs;   ///< NaN until a scan writes them
  static constexpr auto names = fw::names("inputs", "queries", "outputs");
};

namespace detail {

// One entry of a member with that role and `rows` rows.
inline double draw(Role role, Index rows, Random& random, bool positive) {
  const double u = random.uniform();
  if (role == Role::draw) return u;
  if (role == Role::decay) return 0.5 + 0.5 * u;
  const bool is_key = role == Role::key || role == Role::distribution;
  const double scale = is_key ? 1.0 / std::sqrt(static_cast<double>(rows)) : 1.0;
  return scale * (positive || role == Role::strength ? 0.05 + 0.95 * u : 2 * u - 1);
}

// Draws in double, member by member and column by column, so that all scalars get the same numbers.
template <class R, class E> void draw(R& record, const E& extents, Random& random, bool positive) {
  fw::detail::assert_roles<R>();
  std::size_t i = 0;
  for_each_member(
      [&](std::string_view, auto& array, const MemberExtent& extent) {
        using S = typename std::remove_cvref_t<decltype(array)>::Scalar;
        const Role role = R::roles[i++];
        for (Index entry = 0; entry < array.size(); ++entry)
          array.data()[entry] = static_cast<S>(draw(role, extent.rows, random, positive));
      },
      record, extents);
}

// A query that has the name of an input is the token's own.
inline void share_members(const fw::detail::Object& inputs, const fw::detail::Object& queries) {
  for (std::size_t q = 0; q < queries.type->count(queries.address); ++q)
    for (std::size_t i = 0; i < inputs.type->count(inputs.address); ++i) {
      const auto query = queries.type->part(queries.address, q);
      const auto input = inputs.type->part(inputs.address, i);
      if (query.name == input.name && fw::detail::same_shapes(query, input))
        fw::detail::convert(input, query);
    }
}

}  // namespace detail

/// Random inputs and queries. Entries are uniform: values in (−1, 1), keys and queries in (−1, 1)
/// divided by √d_k, write strengths in (0.05, 1), decays in (0.5, 1), draws in [0, 1). With
/// `positive`, (0.05, 1) replaces (−1, 1), for rules that need positive features. A query with the
/// name of an input is that input: Rwkv6 reads with the token's own key.
template <Memory M>
Sequences<M> random_sequences(const M& m, Index steps, Random& random, bool positive = false) {
  using S = typename M::Scalar;
  const auto signature = m.signature();
  Sequences<M> sequences{owned_sequence<OwnedWrites<M>>(signature.write(), steps, S(0)),
                         owned_sequence<OwnedReads<M>>(signature.read(), steps, S(0)),
                         owned_sequence<OwnedOuts<M>>(signature.out(), steps,
                                                      S(std::numeric_limits<double>::quiet_NaN()))};
  detail::draw(sequences.inputs, signature.write(), random, positive);
  detail::draw(sequences.queries, signature.read(), random, positive);
  detail::share_members(fw::detail::object(sequences.inputs),
                        fw::detail::object(sequences.queries));
  return sequences;
}

/// The state of m after `steps` random tokens.
template <Memory M>
StateOf<M> random_state(const M& m, Index steps, Random& random, bool positive = false) {
  auto sequences = random_sequences(m, steps, random, positive);
  StateOf<M> state = initial_state(m);
  scan(m, state, view<WriteSequence<M>>(sequences.inputs), view<ReadSequence<M>>(sequences.queries),
       view<OutSequence<M>>(sequences.outputs));
  return state;
}

}  // namespace fw::testing
