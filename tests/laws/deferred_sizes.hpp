#pragma once

#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>

#include "support/catch.hpp"
#include "support/laws.hpp"
#include "support/sizes.hpp"

/// \file
/// The laws of deferred memories that are not in the table, at all sizes.

namespace laws {

using fw::AnyMemory;
using fw::Deferred;
using fw::Dynamic;
using fw::Index;
using Sizes = fw::Sizes<Dynamic, Dynamic>;
template <class S> using Make = AnyMemory<S> (*)(Sizes);

template <class M, int N, class Stored = typename M::Scalar, int R = 0>
AnyMemory<typename M::Scalar> deferred(Sizes sizes) {
  return Deferred<M, N, Stored, R>(M(sizes));
}

inline void at_all_sizes(Make<double> make, bool positive = false) {
  for (const Index d : ::sizes({1, 3, 17, 63, 64, 65, 100}, {1, 3, 17, 65}))
    laws::all(make({d, d}), positive);
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 5}, {5, 1}, {3, 17}, {65, 4}})
    laws::all(make({dk, dv}), positive);
}
inline void in_float(Make<float> rounded, Make<double> exact) {
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 5}, {5, 1}, {3, 17}, {65, 4}, {64, 64}})
    laws::float_follows_double(laws::runs_of(rounded({dk, dv})), laws::runs_of(exact({dk, dv})));
}

}  // namespace laws
