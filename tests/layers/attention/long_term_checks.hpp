#pragma once

#include <fastweights/continuous/density.hpp>
#include <fastweights/layers/attention/long_term_layer.hpp>
#include <fastweights/layers/attention/strided_conv.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

#include "support/layer_checks.hpp"

/// \file
/// A long-term layer with a small memory, and the run that the tests share.

namespace long_term_checks {

using fw::Index;
using layer_checks::Complex;
using layer_checks::copy_parameters;
using layer_checks::gradient_error;
using layer_checks::Matrix;
using layer_checks::random_matrix;
using layer_checks::relative_difference;
template <class S> using Density = fw::MixtureDensity<S, fw::LearnedComponents<S>>;
template <class S, class Sampling = fw::EvenSampling>
using Memory = fw::ContinuousMemory<S, Density<S>, fw::GaussianBasis<S>, Sampling>;
template <class S> using Slots = fw::CompressiveMemory<S>;

template <class S, class Sampling = fw::EvenSampling>
Memory<S, Sampling> memory(Index d = 6, Index components = 1) {
  typename Memory<S, Sampling>::Options o;
  o.d = d;
  o.chunk = 4;
  o.samples = 5;
  o.regression.ridge = 0.1;
  o.backpropagate = fw::Backpropagate::past;
  return {o, {7, {0.1, 0.3}}, Density<S>{fw::LearnedComponents<S>(7, components, true, 1e-3)}};
}

// A layer that writes the two halves of x as chunks and then reads. Each write has its own trace
// for the backward pass.
template <class L> struct Run {
  using S = typename L::Scalar;
  typename L::State state;
  std::vector<typename L::Trace> writes{2};
  typename L::Trace reads;
  Matrix<S> out;

  Run(const L& layer, const Matrix<S>& x, const Matrix<S>& q, const Matrix<double>& draws)
      : state(layer.initial_state()), out(layer.outputs(), q.cols()) {
    const Index length = x.cols() / 2;
    const Matrix<S> u = draws.cast<S>();
    typename L::Trace unused;
    Matrix<S> ignored(layer.outputs(), q.cols());
    for (std::size_t i = 0; i < 2; ++i) {
      const auto chunk = x.middleCols(static_cast<Index>(i) * length, length);
      layer.write(state, chunk, writes[i], fw::Pass::train, u);
      // A sticky memory samples where earlier queries have read.
      if (i == 0) layer.read(state, q, ignored, unused);
    }
    layer.read(state, q, out, reads, fw::Pass::train);
  }
};

}  // namespace long_term_checks
