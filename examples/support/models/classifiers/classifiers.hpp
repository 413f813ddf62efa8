#pragma once

#include <memory>
#include <string>

#include "models/classifiers/recurrent_kinds.hpp"
#include "models/classifiers/sequence_classifier.hpp"

/// \file
/// The models that associative_retrieval and glimpses compare: recurrent layers of R hidden units.

/// The recurrent layer of that kind, its parameters still zero. The plain RNN is of tanh and starts
/// as PyTorch's, the IRNN is of ReLU and starts from the identity. The fast weights are those of
/// the paper, f = ReLU, λ = 0.95, S = 1, W from 0.05 I, C uniform in ±1/√R; "norm" is the same
/// network with η = 0, which leaves the layer norm. The LSTM starts with forget gates that keep (a
/// bias of 1: Jozefowicz, Zaremba, Sutskever 2015).
template <class S>
AnyLayer<S> recurrent_layer(const std::string& kind, fw::Index inputs, fw::Index units, double eta);

/// Sets what the start of a kind has besides random numbers.
template <class S> void adjust_start(const std::string& kind, AnyLayer<S>& layer);

/// The model of that kind around R units, its parameters drawn from `seed`.
template <class Encoder>
std::unique_ptr<ClassifierModel> make_classifier(const std::string& kind, const Encoder& encoder,
                                                 fw::Index units, double eta, std::uint64_t seed) {
  using S = typename Encoder::Scalar;
  constexpr fw::Index hidden = 100, classes = 10;
  auto model = std::make_unique<TrainedClassifier<Encoder>>(SequenceClassifier<Encoder>(
      encoder, recurrent_layer<S>(kind, encoder.outputs(), units, eta), hidden, classes));
  fw::Random random(seed);
  model->initialise(random);
  adjust_start(kind, model->network.recurrent);
  return model;
}

extern template std::unique_ptr<ClassifierModel> make_classifier(const std::string&,
                                                                 const SymbolEncoder<float>&,
                                                                 fw::Index, double, std::uint64_t);
extern template std::unique_ptr<ClassifierModel> make_classifier(const std::string&,
                                                                 const SymbolEncoder<double>&,
                                                                 fw::Index, double, std::uint64_t);
extern template std::unique_ptr<ClassifierModel> make_classifier(const std::string&,
                                                                 const VectorEncoder&, fw::Index,
                                                                 double, std::uint64_t);
