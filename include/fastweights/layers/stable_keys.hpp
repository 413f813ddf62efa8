#pragma once

#include <fastweights/algorithms/scan.hpp>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/owned.hpp>
#include <fastweights/core/stability.hpp>

/// \file
/// True if a memory is stable for the keys that a layer makes for it. A delta rule needs keys of
/// bounded length, which a projection alone does not give.

namespace fw::inline FASTWEIGHTS_ABI::detail {

// Keys before the feature map, of ordinary and of large size: equal entries, entries of both signs
// whose sum nearly cancels, and a single entry.
template <class S> Eigen::Matrix<S, Dynamic, Dynamic> sample_keys(Index rows) {
  Eigen::Matrix<S, Dynamic, Dynamic> keys(rows, 6);
  for (Index j = 0; j < 6; ++j) {
    const double size = j < 3 ? 1 : 100;
    for (Index i = 0; i < rows; ++i)
      keys(i, j) = S(j % 3 == 0   ? size
                     : j % 3 == 1 ? (i % 2 == 0 ? size : -0.99 * size)
                                  : (i == 0 ? size : 0));
  }
  return keys;
}

// Tokens with these keys, and with the largest strengths and decays that a layer makes.
template <class M, class Map>
OwnedWrites<M> sample_tokens(const M& m, const Map& map, Index d_key) {
  using S = typename M::Scalar;
  const auto sizes = m.signature().write();
  const auto keys = sample_keys<S>(d_key);
  auto tokens = owned_sequence<OwnedWrites<M>>(sizes, keys.cols(), S(0));
  std::size_t i = 0;
  for_each_member(
      [&](std::string_view, auto& member, const MemberExtent& extent) {
        const Role role = OwnedWrites<M>::roles[i++];
        if (role == Role::key) {
          Eigen::Matrix<S, Dynamic, Dynamic> features(extent.rows, keys.cols());
          map.map(keys, features);
          for (Index j = 0; j < member.cols(); ++j) member.col(j) = features.col(j / extent.width);
        } else if (role == Role::distribution) {
          member.setConstant(S(1) / S(static_cast<double>(extent.rows)));
        } else if (role == Role::strength || role == Role::decay) {
          member.setOnes();
        }
      },
      tokens, sizes);
  return tokens;
}

/// Throws std::invalid_argument, which says how to mend it, if the memory's own condition
/// (core/stability.hpp) does not hold for keys that the feature map makes.
template <class M, class Map>
void check_stable_keys(std::string_view layer, const M& m, const Map& map, Index d_key,
                       std::string_view remedy) {
  if constexpr (StabilityCondition<M>) {
    const auto sizes = m.signature().write();
    auto tokens = sample_tokens(m, map, d_key);
    const auto sequence = view<WriteSequence<M>>(tokens);
    for (Index t = 0; t < steps_of(sequence, sizes); ++t)
      if (const Violation v = m.violation(token_at<WriteToken<M>>(sequence, sizes, t))) {
        throw_invalid({layer, ": ", M::name, " is unstable with keys of ", Map::name, ": ",
                       v.quantity, " is ", number_text(v.given), ", expected ", v.expected,
                       ". Use ", remedy});
      }
  }
}

}  // namespace fw::detail
