#pragma once

#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/fast_weights.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <stdexcept>

#include "models/classifiers/classifiers.hpp"
#include "models/classifiers/sequence_classifier.hpp"

/// \file
/// Defines make_classifier, for the sources that instantiate it.

/// A memory with the delta rule, with as many units as the recurrent layers. A short convolution
/// over a token and the one before makes the inputs of the memory, which does not know the order of
/// tokens by itself.
///
///     u_t = ReLU(conv(W x)_t)        y_t = u_t + delta(u)_t
///
/// The memory is R×R, with keys of length 1. Yang et al. 2024, arXiv 2406.06484, section 3.3, has
/// the convolution behind the projections of each head.
template <class S>
fw::networks::Value<S> delta_layer(const fw::networks::Value<S>& x, fw::Index units) {
  using namespace fw::networks;
  const ConvolutionOptions two{.kernel = 2, .groups = units, .bias = true};
  const Value<S> u = relu(convolution(linear(x, "input", units, true), "conv", two));
  const fw::DeltaRule<S> rule({.key_size = units});
  return u + fast_weights(u, "memory", rule, {}, fw::L2Normalise());
}

/// The recurrent layer of a kind. The plain RNN is of tanh, the IRNN of ReLU. The fast weights are
/// those of the paper, f = ReLU, λ = 0.95, S = 1; "norm" is the same network with η = 0, which
/// leaves the layer norm.
template <class S>
fw::networks::Value<S> recurrent(const fw::networks::Value<S>& x, const std::string& kind,
                                 fw::Index units, double eta) {
  using namespace fw::networks;
  if (kind == "rnn") return rnn(x, "rnn", units);
  if (kind == "irnn") return rnn<Relu>(x, "rnn", units);
  if (kind == "lstm") return lstm(x, "lstm", units);
  if (kind == "delta") return delta_layer(x, units);
  if (kind == "norm") eta = 0;
  if (kind == "fast" || kind == "norm")
    return fast_weights_rnn(x, "fast_weights", {.hidden = units, .rate = eta});
  throw std::invalid_argument("there is no model '" + kind +
                              "': expected rnn, irnn, lstm, delta, fast or norm");
}

/// Sets what the start of a kind has besides random numbers. The IRNN starts from the identity with
/// biases of 0, W of the fast weights from 0.05 I. The LSTM starts with forget gates that keep (a
/// bias of 1: Jozefowicz, Zaremba, Sutskever 2015).
template <class S> void adjust_start(fw::networks::Network<S>& layer, const std::string& kind) {
  using fw::networks::start_at_identity;
  if (kind == "irnn") start_at_identity(layer, "rnn.weight_hh_l0");
  if (kind == "fast" || kind == "norm")
    start_at_identity(layer, "fast_weights.recurrent.weight", 0.05);
  for (auto& weight : layer.weights) {
    if (kind == "irnn" && weight.name.starts_with("rnn.bias")) weight.value.setZero();
    if (weight.name == "lstm.bias_ih_l0")
      weight.value.middleRows(layer.outputs(), layer.outputs()).setOnes();
  }
}

/// A layer of ReLU for vectors, or for the embeddings of symbols, which start normal.
template <class S> fw::networks::Network<S> encoder(const Tokens& tokens) {
  using namespace fw::networks;
  Builder<S> net;
  const Value<S> x = tokens.symbols > 0 ? embedding(net, "embedding", tokens.symbols, tokens.size)
                                        : net.input(tokens.size);
  Network<S> network = net.build(relu(linear(x, "linear", tokens.encoded, true)));
  for (auto& weight : network.weights)
    if (weight.name == "embedding.weight")
      weight.initialiser = [](double, double normal) { return normal; };
  return network;
}

/// The network that f(x) describes, for x of `rows` rows.
template <class S, class F> fw::networks::Network<S> network_of(fw::Index rows, const F& f) {
  fw::networks::Builder<S> net;
  return net.build(f(net.input(rows)));
}

template <class S>
std::unique_ptr<ClassifierModel> make_classifier(const std::string& kind, const Tokens& tokens,
                                                 fw::Index units, double eta, std::uint64_t seed) {
  using X = fw::networks::Value<S>;
  constexpr fw::Index hidden = 100, classes = 10;
  auto model = std::make_unique<SequenceClassifier<S>>(ClassifierNetworks<S>{
      encoder<S>(tokens),
      network_of<S>(tokens.encoded, [&](const X& x) { return recurrent(x, kind, units, eta); }),
      network_of<S>(units, [&](const X& x) {
        return linear(relu(linear(x, "hidden", hidden, true)), "output", classes, true);
      })});
  fw::Random random(seed);
  model->initialise(random);
  adjust_start(model->network.recurrent, kind);
  return model;
}
