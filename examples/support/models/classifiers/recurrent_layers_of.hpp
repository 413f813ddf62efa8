#pragma once

#include <fastweights/fastweights.hpp>
#include <stdexcept>

#include "models/classifiers/classifiers.hpp"
#include "models/classifiers/delta_layer.hpp"

/// \file
/// Defines recurrent_layer and adjust_start, for the sources that instantiate them.

/// The layers with fast weights.
template <class S>
AnyLayer<S> fast_weight_layer(const std::string& kind, fw::Index inputs, fw::Index units,
                              double eta) {
  if (kind == "delta") return DeltaLayer<S>(inputs, units);
  if (kind != "fast" && kind != "norm")
    throw std::invalid_argument("there is no model '" + kind +
                                "': expected rnn, irnn, lstm, delta, fast or norm");
  return fw::FastWeightsRnn<S>(
      {.inputs = inputs, .hidden = units, .rate = kind == "fast" ? eta : 0.0});
}

extern template AnyLayer<float> fast_weight_layer<float>(const std::string&, fw::Index, fw::Index,
                                                         double);

template <class S>
AnyLayer<S> recurrent_layer(const std::string& kind, fw::Index inputs, fw::Index units,
                            double eta) {
  if (kind == "rnn") return fw::Rnn<S>(inputs, units);
  if (kind == "irnn") return fw::Rnn<S, fw::Relu>(inputs, units);
  if (kind == "lstm") return fw::Lstm<S>(inputs, units);
  return fast_weight_layer<S>(kind, inputs, units, eta);
}

template <class S> void adjust_start(const std::string& kind, AnyLayer<S>& layer) {
  if (kind == "irnn") layer.template get<fw::Rnn<S, fw::Relu>>()->start_at_identity();
  if (kind == "lstm") {
    auto& bias = layer.template get<fw::Lstm<S>>()->bias_ih;
    const fw::Index units = layer.outputs();
    bias.segment(units, units).setOnes();  // of the forget gates
  }
}
