#pragma once

#include <fastweights/networks/operations.hpp>
#include <fastweights/training/losses.hpp>
#include <functional>

#include "training/sequence_model.hpp"

/// \file
/// The language model of char_lm, generate and the algorithmic tasks: one network around mixers of
/// any kind.

/// The part of a block that reads earlier tokens.
template <class S>
using Mixer = std::function<fw::networks::Value<S>(const fw::networks::Value<S>&)>;

struct LanguageModelSizes {
  fw::Index symbols = 0, layers = 2, width = 64, hidden = 256;
};

/// Pre-norm blocks of a mixer and a feed-forward layer, layer norm, logits.
template <class S>
fw::networks::Value<S> language_layers(fw::networks::Value<S> x, const LanguageModelSizes& o,
                                       const Mixer<S>& mixer) {
  using fw::networks::Value, fw::networks::module;
  constexpr fw::networks::NormOptions norm{.epsilon = 1e-5, .bias = true};
  for (fw::Index i = 0; i < o.layers; ++i)
    x = module("blocks." + std::to_string(i), x, [&](const Value<S>& in) {
      const Value<S> h = in + module("mixer", layer_norm(in, "norm1", norm), mixer);
      return h + module("ffn", layer_norm(h, "norm2", norm), [&](const Value<S>& y) {
               return linear(gelu(linear(y, "up", o.hidden, true)), "down", o.width, true);
             });
    });
  return linear(layer_norm(x, "norm", norm), "head", o.symbols, true);
}

/// A language model: the blocks behind an embedding. All weights are zero.
template <class S>
fw::networks::Network<S> language_network(const LanguageModelSizes& o, const Mixer<S>& mixer) {
  fw::networks::Builder<S> net;
  fw::networks::Network<S> network =
      net.build(language_layers(embedding(net, "embedding", o.symbols, o.width), o, mixer));
  for (auto& weight : network.weights) weight.value.setZero(weight.rows(), weight.cols());
  return network;
}

template <class S>
class LanguageModel final
    : public RecordModel<LanguageModel<S>, SequenceModel, fw::networks::Network<S>> {
 public:
  using Network = fw::networks::Network<S>;
  using Base = RecordModel<LanguageModel, SequenceModel, Network>;
  using Base::Base, Base::network;

  Score run(std::span<const TaskSequence> sequences, long batch, std::any& buffers,
            TrainedModel* gradient = nullptr) const override {
    if (!buffers.has_value()) buffers = std::make_shared<Buffers>();  // any copies what it holds
    auto& b = *std::any_cast<std::shared_ptr<Buffers>&>(buffers);
    Score score = join(b, sequences);
    b.logits.resize(network.outputs(), static_cast<fw::Index>(b.input.size()));
    auto state = network.initial_state(static_cast<fw::Index>(sequences.size()));
    network.forward(state, b.input, b.logits, b.trace,
                    {gradient ? fw::Pass::train : fw::Pass::infer, b.lengths});
    fw::Index first = 0;
    for (std::size_t i = 0; i < sequences.size(); first += b.lengths[i++]) {
      const long right =
          count_right(b.logits.middleCols(first, b.lengths[i]), sequences[i].targets);
      score.right += right;
      score.complete += right == count_answers(sequences[i]);
    }
    score.loss = static_cast<double>(fw::cross_entropy(
        b.logits, b.targets, b.logits,
        {.ignore_index = no_answer, .weights = b.weights, .divisor = static_cast<double>(batch)}));
    if (gradient)
      network.backward(b.trace, b.logits, static_cast<LanguageModel&>(*gradient).network);
    return score;
  }

 private:
  struct Buffers {
    typename Network::Trace trace;
    Eigen::MatrixX<S> logits;
    std::vector<int> input, targets;
    std::vector<fw::Index> lengths;  // of the sequences
    std::vector<double> weights;     // of the tokens' losses
  };

  // Joins the sequences, which weigh the same however many answers they have.
  static Score join(Buffers& b, std::span<const TaskSequence> sequences) {
    Score score{.examples = static_cast<long>(sequences.size())};
    b.input.clear();
    b.targets.clear();
    b.lengths.clear();
    b.weights.clear();
    for (const TaskSequence& s : sequences) {
      const long answers = count_answers(s);
      score.answers += answers;
      b.lengths.push_back(std::ssize(s.input));
      b.input.insert(b.input.end(), s.input.begin(), s.input.end());
      b.targets.insert(b.targets.end(), s.targets.begin(), s.targets.end());
      b.weights.insert(b.weights.end(), s.targets.size(), 1 / static_cast<double>(answers));
    }
    return score;
  }
};

extern template class LanguageModel<float>;
extern template class LanguageModel<double>;  // the tests instantiate it
