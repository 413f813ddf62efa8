#pragma once

#include <fastweights/continuous/density.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

#include "support/largest_entry.hpp"
#include "support/laws.hpp"

/// \file
/// Continuous memories for tests, with densities narrow enough to distinguish positions.

namespace continuous_memories {

using fw::Backpropagate;
using fw::Contraction;
using fw::Dynamic;
using fw::EvenSampling;
using fw::Index;
using fw::SamplingScheme;
using fw::StickySampling;
template <class S> using Gaussians = fw::GaussianBasis<S>;
template <class S> using Slots = fw::RectangularBasis<S>;
template <class S> using Learned = fw::MixtureDensity<S, fw::LearnedComponents<S>>;
template <class S, class Sampling = EvenSampling, int D = Dynamic>
using Memory = fw::ContinuousMemory<S, Learned<S>, Gaussians<S>, Sampling, D>;
template <class S> using Gibbs = fw::ContinuousMemory<S, fw::GibbsDensity<S>, Slots<S>>;

inline Learned<double> density(Index functions, Index components = 1) {
  fw::Random random(5);
  Learned<double> d{fw::LearnedComponents<double>(functions, components, true, 1e-3)};
  d.components.initialise(random);
  d.components.variance_bias.setConstant(-3);  // narrow enough to distinguish positions
  return d;
}

template <class M>
typename M::Options options(Index d, Index heads, Index chunk, Index samples,
                            Contraction contraction = Contraction::even()) {
  typename M::Options o;
  o.d = d;
  o.heads = heads;
  o.chunk = chunk;
  o.samples = samples;
  o.contraction = contraction;
  o.regression.ridge = 0.1;
  o.backpropagate = Backpropagate::past;
  return o;
}

template <class Sampling = EvenSampling>
Memory<double, Sampling> memory(Index d, Index heads, Index chunk, Index samples, Index functions,
                                Contraction contraction = Contraction::even()) {
  using M = Memory<double, Sampling>;
  return {options<M>(d, heads, chunk, samples, contraction),
          {functions, {0.1, 0.3}},
          density(functions)};
}

template <class M> void obeys(const M& m) {
  laws::all(m);
  laws::gradients_are_exact(m, 1, false);
  laws::gradients_are_exact(m, 5, false);
}

}  // namespace continuous_memories
