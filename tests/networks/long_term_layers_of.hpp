#pragma once

#include <fastweights/continuous/density.hpp>
#include <fastweights/layers/attention/strided_conv.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

#include "networks/long_term_layers.hpp"

/// \file
/// The long-term layers of one scalar, for the source that compiles them.

namespace long_term {

template <class S> using Density = fw::MixtureDensity<S, fw::LearnedComponents<S>>;
template <class S, class Sampling>
using Continuous = fw::ContinuousMemory<S, Density<S>, fw::GaussianBasis<S>, Sampling>;

template <class S, class Sampling = fw::EvenSampling>
Continuous<S, Sampling> continuous(Index components = 1) {
  typename Continuous<S, Sampling>::Options o;
  o.d = d;
  o.chunk = chunk;
  o.samples = 5;
  o.regression.ridge = 0.1;
  o.backpropagate = fw::Backpropagate::past;
  return {o, {5, {0.1, 0.3}}, Density<S>{fw::LearnedComponents<S>(5, components, true, 1e-3)}};
}

/// f(layer) for a layer of this kind.
template <class S, class F> Value<S> with_layer(Kind kind, const F& f) {
  using fw::CompressiveMemory, fw::LongTermLayer, fw::NoGate;
  fw::LongTermOptions o{.heads = heads};
  switch (kind) {
    case Kind::even:
      return f(LongTermLayer(o, continuous<S>(2), NoGate<S>()));
    case Kind::penalised:
      o.kl = {.weight = 0.3, .sigma0 = 0.2, .mean = true, .mu0 = 0.4};
      return f(LongTermLayer(o, continuous<S>(), NoGate<S>()));
    case Kind::sticky:
      return f(LongTermLayer(o, continuous<S, fw::StickySampling>(), fw::ConvGate<S>(d)));
    case Kind::affine_gate:
      return f(LongTermLayer({.heads = 1}, continuous<S>(), fw::AffineGate<S>(chunk)));
    case Kind::compressive:
      return f(
          LongTermLayer(o, CompressiveMemory<S>({d, 1, chunk, 3, 1}), fw::StridedConv<S>(d, 2)));
    default:
      return f(LongTermLayer(o, CompressiveMemory<S>({d, 1, chunk, 3, 2}), NoGate<S>()));
  }
}

template <class S>
Value<S> attend(Kind kind, const Value<S>& tokens, const Value<S>& queries, const std::string& name,
                const LongTermWindow& when) {
  return with_layer<S>(kind, [&](const auto& layer) {
    return long_term_attention(tokens, queries, name, layer, when);
  });
}
template <class S>
Value<S> join(Kind kind, const Value<S>& x, const Value<S>& near, const LongTermWindow& when,
              Join how) {
  return with_layer<S>(
      kind, [&](const auto& layer) { return joined_attention(x, near, layer, when, how); });
}

}  // namespace long_term

/// Compiles them for a scalar.
#define LONG_TERM_LAYERS(S)                                                                   \
  template fw::networks::Value<S> long_term::attend(                                          \
      Kind, const fw::networks::Value<S>&, const fw::networks::Value<S>&, const std::string&, \
      const fw::networks::LongTermWindow&);                                                   \
  template fw::networks::Value<S> long_term::join(                                            \
      Kind, const fw::networks::Value<S>&, const fw::networks::Value<S>&,                     \
      const fw::networks::LongTermWindow&, fw::networks::Join)
