#pragma once

#include <fastweights/continuous/density.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/layers/attention/joined_attention.hpp>
#include <fastweights/layers/attention/relative_attention.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>

#include "support/layer_checks.hpp"

/// \file
/// Small JoinedAttention layers with every type of short-term and long-term memory.

namespace joined_layers {

using fw::Index;
using fw::Join;
using layer_checks::Complex;
using layer_checks::Matrix;
using layer_checks::random_matrix;
using layer_checks::relative_difference;
template <class S> using Density = fw::MixtureDensity<S, fw::LearnedComponents<S>>;
template <class S, class Sampling>
using Continuous = fw::ContinuousMemory<S, Density<S>, fw::GaussianBasis<S>, Sampling>;
template <class S> using Even = fw::LongTermLayer<Continuous<S, fw::EvenSampling>>;
template <class S>
using Sticky = fw::LongTermLayer<Continuous<S, fw::StickySampling>, fw::ConvGate<S>>;
template <class S> using Compressive = fw::LongTermLayer<fw::CompressiveMemory<S>>;
template <class S> using Relative = fw::RelativeAttention<S>;
template <class S> using Cached = fw::FastWeightLayer<fw::KeyValueCache<S>, fw::IdentityMap>;

constexpr Index d = 4, window = 3, chunk = 2;

template <class L> L long_term() {
  using S = typename L::Scalar;
  if constexpr (std::is_same_v<L, Compressive<S>>) {
    return L({.heads = 2}, fw::CompressiveMemory<S>({d, 1, chunk, 3, 2}), {});
  } else {
    using M = decltype(std::declval<L&>().memory);
    typename M::Options o;
    o.d = d;
    o.chunk = chunk;
    o.samples = 5;
    o.regression.ridge = 0.1;
    o.backpropagate = fw::Backpropagate::past;
    M m(o, {5, {0.1, 0.3}}, Density<S>{fw::LearnedComponents<S>(5, 1, true, 1e-3)});
    if constexpr (M::sticky)
      return L({.heads = 2}, m, fw::ConvGate<S>(d));
    else
      return L({.heads = 2}, m, {});
  }
}

template <class L> L short_term() {
  using S = typename L::Scalar;
  if constexpr (std::is_same_v<L, Relative<S>>)
    return L({d, 2, window, true});
  else
    return L({.d_model = d, .heads = 2},
             fw::KeyValueCache<S>({.key_size = 2}, {window, fw::WhenFull::slide}));
}

template <class Short, class Long> fw::JoinedAttention<Short, Long> joined(Join join = Join::sum) {
  return {short_term<Short>(), long_term<Long>(), window, chunk, join};
}

template <template <class> class Short, template <class> class Long> void check(Join join) {
  layer_checks::check_layer(joined<Short<double>, Long<double>>(join),
                            joined<Short<Complex>, Long<Complex>>(join), {1, 4, 13});
}

// A layer with random parameters.
template <class Short, class Long> auto random_layer(Join join = Join::sum) {
  auto layer = joined<Short, Long>(join);
  fw::Random random(3);
  layer_checks::randomise(layer, random);
  return layer;
}

template <class L> Matrix<double> whole(const L& layer, const Matrix<double>& x, Index seed = 0) {
  Matrix<double> y = Matrix<double>::Constant(layer.outputs(), x.cols(), NAN);
  auto state = layer.initial_state();
  state.seed = seed;
  typename L::Trace trace;
  layer.forward(state, x, y, trace);
  return y;
}

}  // namespace joined_layers
