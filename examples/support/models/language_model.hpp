#pragma once

#include <fastweights/layers/models/language_model.hpp>
#include <fastweights/layers/models/pre_norm_block.hpp>
#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/layers/projections/feed_forward.hpp>
#include <fastweights/training/losses.hpp>

#include "models/any_layer.hpp"
#include "training/sequence_model.hpp"

/// \file
/// The language model of char_lm, generate and the algorithmic tasks: one network around a mixer of
/// any type.

template <class S>
using AnyBlock = fw::PreNormBlock<fw::LayerNorm<S>, AnyLayer<S>, fw::FeedForward<S>>;

template <class S>
class LanguageModel final
    : public RecordModel<LanguageModel<S>, SequenceModel, fw::LanguageModel<AnyBlock<S>>> {
 public:
  using Network = fw::LanguageModel<AnyBlock<S>>;
  using Base = RecordModel<LanguageModel, SequenceModel, Network>;
  using Base::network;
  using Matrix = Eigen::MatrixX<S>;

  LanguageModel(fw::Index symbols, fw::Index layers, AnyLayer<S> mixer, fw::Index hidden)
      : Base(Network(symbols, layers, block(std::move(mixer), hidden))) {}

  Score run(const TaskSequence& sequence, long batch, fw::Pass pass, std::any& buffers,
            TrainedModel& gradient) const override {
    if (!buffers.has_value()) buffers.emplace<Buffers>();
    auto& b = std::any_cast<Buffers&>(buffers);
    b.logits.resize(network.symbols(), static_cast<fw::Index>(sequence.input.size()));
    auto state = network.initial_state();
    network.forward(state, sequence.input, b.logits, b.trace, pass);
    gather(b, sequence);
    Score score;
    score.answers = static_cast<long>(b.targets.size());
    score.right = count_right(b.answers, b.targets);
    score.complete = score.right == score.answers;
    score.loss = static_cast<double>(fw::cross_entropy(b.answers, b.targets, b.answers));
    if (pass == fw::Pass::infer) return score;
    b.logits.setZero();
    for (std::size_t i = 0; i < b.columns.size(); ++i)
      b.logits.col(b.columns[i]) = b.answers.col(static_cast<fw::Index>(i)) / static_cast<S>(batch);
    network.backward(sequence.input, b.trace, b.logits,
                     static_cast<LanguageModel&>(gradient).network);
    return score;
  }

 private:
  struct Buffers {
    typename Network::Trace trace;
    Matrix logits, answers;
    std::vector<int> targets, columns;  // of the answers
  };

  static AnyBlock<S> block(AnyLayer<S> mixer, fw::Index hidden) {
    const fw::Index width = mixer.inputs();
    return {std::move(mixer), fw::FeedForward<S>(width, hidden)};
  }

  // Copies the logits of the tokens with an answer.
  static void gather(Buffers& b, const TaskSequence& sequence) {
    b.targets.clear();
    b.columns.clear();
    for (std::size_t t = 0; t < sequence.targets.size(); ++t)
      if (sequence.targets[t] != no_answer) {
        b.targets.push_back(sequence.targets[t]);
        b.columns.push_back(static_cast<int>(t));
      }
    b.answers.resize(b.logits.rows(), static_cast<fw::Index>(b.columns.size()));
    for (std::size_t i = 0; i < b.columns.size(); ++i)
      b.answers.col(static_cast<fw::Index>(i)) = b.logits.col(b.columns[i]);
  }
};

extern template struct fw::LanguageModel<AnyBlock<float>>;
extern template class LanguageModel<float>;
extern template class LanguageModel<double>;  // the tests instantiate it
