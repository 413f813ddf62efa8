#pragma once

#include <algorithm>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/core/owned.hpp>
#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <stdexcept>
#include <string>

/// \file
/// Why a memory cannot be the attention of Hypernetwork: in a head one token writes v under key 1,
/// another writes something under key 0 and reads with query z, and the answer must be z v.

namespace fw::detail {

[[noreturn]] inline void refuse_hypernetwork(const std::string& what) {
  throw std::invalid_argument("Hypernetwork: cannot be built with " + what);
}

// The last of maps in a chain, by which features leave it.
template <class Map> struct LastMap { using type = Map; };
template <class First, class Second, class... More>
struct LastMap<Chain<First, Second, More...>>
    : LastMap<typename Chain<First, Second, More...>::Tail> {};

template <class Map> constexpr std::string_view map_obstacle() {
  using Last = typename LastMap<Map>::type;
  if (std::is_same_v<Last, SumNormalise>)
    return "sum normalisation: of one key row it makes 1, whatever z is";
  if (std::is_same_v<Last, SoftmaxMap>)
    return "a softmax of keys and queries: of one key row it makes 1, whatever z is";
  if (std::is_same_v<Last, L2Normalise>)
    return "L2 normalisation: of one key row it makes 1 or -1, which leaves of z its sign";
  if (std::is_same_v<Last, EluPlusOne>)
    return "ELU+1: it maps 0 to 1, so that every token writes and reads in every head, and is not "
           "linear in z";
  return {};
}

/// The reason by which kinds of memories are refused; empty for others.
template <class M> struct Obstacle { static constexpr std::string_view reason{}; };
template <class S, int Dk, int Dv> struct Obstacle<KeyValueCache<S, Dk, Dv>> {
  static constexpr std::string_view reason =
      "softmax: its weights are positive and sum to 1, where z may be any number";
};
template <class M, class Map, int D> struct Obstacle<FeatureMapped<M, Map, D>> {
  static constexpr std::string_view reason =
      map_obstacle<Map>().empty() ? Obstacle<M>::reason : map_obstacle<Map>();
};
template <class M>
requires requires(StateOf<M>& s) { s.normaliser.sum; }
struct Obstacle<M> {
  static constexpr std::string_view reason =
      "attention normalisation: it divides by z times a key, which takes z out again";
};

// How far the answer is from z v in units of `size`, with strengths of 1, on values up to twice it.
template <Memory M> double hypernetwork_error(const M& memory, typename M::Scalar size) {
  using S = typename M::Scalar;
  using Roles = typename M::Signature::template Write<Extents>;
  const auto signature = memory.signature();
  auto written = owned_sequence<OwnedWrites<M>>(signature.write(), 2, S(1));
  auto asked = owned_sequence<OwnedReads<M>>(signature.read(), 2, S(-3));
  auto answered = owned_sequence<OwnedOuts<M>>(signature.out(), 2, S(0));
  auto& answer = std::get<0>(members(answered));
  Eigen::Matrix<S, Dynamic, 1> value(answer.rows());
  for (Index i = 0; i < value.size(); ++i) value[i] = size * S(i % 2 == 0 ? -2.0 : 0.5);
  for_each_member(
      [&, i = std::size_t{0}](std::string_view, auto& array) mutable {
        const Role role = Roles::roles[i++];
        if (role == Role::key) array.col(1).setZero();
        if (role == Role::value) array.col(0) = value.head(array.rows());
      },
      written);
  auto state = fw::initial_state(memory);
  fw::scan(memory, state, view<WriteSequence<M>>(written), view<ReadSequence<M>>(asked),
           view<OutSequence<M>>(answered));
  const S error =
      (answer.col(1) + S(3) * value).cwiseAbs().template maxCoeff<Eigen::PropagateNaN>();
  return static_cast<double>(error / size);
}

/// Throws std::invalid_argument, with the reason, for a memory that is no linear attention.
template <Memory M> void refuse_obstacle(const M& memory) {
  if (!Obstacle<M>::reason.empty()) refuse_hypernetwork(std::string(Obstacle<M>::reason));
  const auto& roles = M::Signature::template Write<Extents>::roles;
  const std::string rule(M::name);
  if (std::find(roles.begin(), roles.end(), Role::decay) != roles.end())
    refuse_hypernetwork(rule + ": what the first token writes decays before the second reads it");
  const double rounding = 64 * static_cast<double>(Eigen::NumTraits<typename M::Scalar>::epsilon());
  for (const double size : {1.0, 1e3, 1e-3})  // an activation may be the identity for some
    if (!(hypernetwork_error(memory, static_cast<typename M::Scalar>(size)) <= rounding))
      refuse_hypernetwork(rule + ": what it answers is not z times the value that was written");
}

}  // namespace fw::detail
