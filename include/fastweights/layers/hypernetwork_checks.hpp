#pragma once

#include <algorithm>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/core/errors.hpp>
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
/// Rejects memories that cannot be the attention of Hypernetwork. In a head the first token writes
/// value v with key 1; the second token writes some value with key 0 and reads with query z. The
/// output must be z v.

namespace fw::inline FASTWEIGHTS_ABI::detail {

[[noreturn]] inline void reject_hypernetwork(const std::string& what) {
  throw_invalid({"Hypernetwork: cannot be built with ", what});
}

// The last map of a chain.
template <class Map> struct LastMap { using type = Map; };
template <class First, class Second, class... More>
struct LastMap<Chain<First, Second, More...>>
    : LastMap<typename Chain<First, Second, More...>::Tail> {};

template <class Map> constexpr std::string_view unsupported_map() {
  using Last = typename LastMap<Map>::type;
  if (std::is_same_v<Last, SumNormalise>)
    return "sum normalisation: with one key row its output is 1 for every z";
  if (std::is_same_v<Last, SoftmaxMap>)
    return "a softmax of keys and queries: with one key row its output is 1 for every z";
  if (std::is_same_v<Last, L2Normalise>)
    return "L2 normalisation: with one key row its output is the sign of z";
  if (std::is_same_v<Last, EluPlusOne>)
    return "ELU+1: it maps 0 to 1, so every token writes and reads in every head, and it is not "
           "linear in z";
  return {};
}

/// The reason why a type of memory is unsupported; empty for other memories.
template <class M> struct UnsupportedMemory { static constexpr std::string_view reason{}; };
template <class S, int Dk, int Dv> struct UnsupportedMemory<KeyValueCache<S, Dk, Dv>> {
  static constexpr std::string_view reason =
      "softmax: its weights are positive and sum to 1, but z may be any number";
};
template <class M, class Map, int D> struct UnsupportedMemory<FeatureMapped<M, Map, D>> {
  static constexpr std::string_view reason =
      unsupported_map<Map>().empty() ? UnsupportedMemory<M>::reason : unsupported_map<Map>();
};
template <class M>
requires requires(StateOf<M>& s) { s.normaliser.sum; }
struct UnsupportedMemory<M> {
  static constexpr std::string_view reason =
      "attention normalisation: it divides by z times a key, which cancels z";
};

// The error of the output z v, relative to `size`, with strengths of 1 and values up to 2 size.
template <Memory M> double hypernetwork_error(const M& memory, typename M::Scalar size) {
  using S = typename M::Scalar;
  using Roles = typename M::Signature::template Write<Extents>;
  const auto signature = memory.signature();
  auto written = owned_sequence<OwnedWrites<M>>(signature.write(), 2, S(1));
  auto queries = owned_sequence<OwnedReads<M>>(signature.read(), 2, S(-3));
  auto outputs = owned_sequence<OwnedOuts<M>>(signature.out(), 2, S(0));
  auto& output = std::get<0>(members(outputs));
  Eigen::Matrix<S, Dynamic, 1> value(output.rows());
  for (Index i = 0; i < value.size(); ++i) value[i] = size * S(i % 2 == 0 ? -2.0 : 0.5);
  for_each_member(
      [&, i = std::size_t{0}](std::string_view, auto& array) mutable {
        const Role role = Roles::roles[i++];
        if (role == Role::key) array.col(1).setZero();
        if (role == Role::value) array.col(0) = value.head(array.rows());
      },
      written);
  auto state = fw::initial_state(memory);
  fw::scan(memory, state, view<WriteSequence<M>>(written), view<ReadSequence<M>>(queries),
           view<OutSequence<M>>(outputs));
  const S error =
      (output.col(1) + S(3) * value).cwiseAbs().template maxCoeff<Eigen::PropagateNaN>();
  return static_cast<double>(error / size);
}

/// Throws std::invalid_argument, with the reason, for a memory that is not linear attention.
template <Memory M> void check_hypernetwork_memory(const M& memory) {
  if (!UnsupportedMemory<M>::reason.empty())
    reject_hypernetwork(std::string(UnsupportedMemory<M>::reason));
  const auto& roles = M::Signature::template Write<Extents>::roles;
  const std::string rule(M::name);
  if (std::find(roles.begin(), roles.end(), Role::decay) != roles.end())
    reject_hypernetwork(rule +
                        ": the value of the first token decays before the second token reads it");
  const double rounding = 64 * static_cast<double>(Eigen::NumTraits<typename M::Scalar>::epsilon());
  for (const double size : {1.0, 1e3, 1e-3})  // an activation may be the identity for some sizes
    if (!(hypernetwork_error(memory, static_cast<typename M::Scalar>(size)) <= rounding))
      reject_hypernetwork(rule + ": its output is not z times the written value");
}

}  // namespace fw::detail
