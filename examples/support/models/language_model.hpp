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

  Score run(std::span<const TaskSequence> sequences, long batch, std::any& buffers,
            TrainedModel* gradient = nullptr) const override {
    if (!buffers.has_value()) buffers.emplace<Buffers>();
    auto& b = std::any_cast<Buffers&>(buffers);
    Score score;
    while (!sequences.empty()) {
      const std::size_t together = count_together(sequences);
      score += run_together(sequences.first(together), batch, b, gradient);
      sequences = sequences.subspan(together);
    }
    return score;
  }

 private:
  struct Buffers {
    typename Network::Trace trace;
    Matrix logits;
    std::vector<int> input, targets;
    std::vector<double> weights;  // of the tokens' losses
  };

  static AnyBlock<S> block(AnyLayer<S> mixer, fw::Index hidden) {
    const fw::Index width = mixer.inputs();
    return {std::move(mixer), fw::FeedForward<S>(width, hidden)};
  }

  // How many of the first sequences go through the network at once: equally long ones, if the
  // mixers read several.
  std::size_t count_together(std::span<const TaskSequence> sequences) const {
    const std::size_t length = sequences[0].input.size();
    std::size_t count = 1;
    for (const auto& block : network.blocks)
      if (!block.mixer.reads_several()) return 1;
    while (count < sequences.size() && sequences[count].input.size() == length) ++count;
    return count;
  }

  // Joins the sequences, which weigh the same however many answers they have.
  static Score join(Buffers& b, std::span<const TaskSequence> sequences) {
    Score score;
    b.input.clear();
    b.targets.clear();
    b.weights.clear();
    for (const TaskSequence& s : sequences) {
      const long answers = count_answers(s);
      score.answers += answers;
      b.input.insert(b.input.end(), s.input.begin(), s.input.end());
      b.targets.insert(b.targets.end(), s.targets.begin(), s.targets.end());
      b.weights.insert(b.weights.end(), s.targets.size(), 1 / static_cast<double>(answers));
    }
    score.examples = static_cast<long>(sequences.size());
    return score;
  }

  Score run_together(std::span<const TaskSequence> sequences, long batch, Buffers& b,
                     TrainedModel* gradient) const {
    Score score = join(b, sequences);
    const auto length = static_cast<fw::Index>(sequences[0].input.size());
    b.logits.resize(network.symbols(), static_cast<fw::Index>(b.input.size()));
    auto state = network.initial_state(static_cast<fw::Index>(sequences.size()));
    network.forward(state, b.input, b.logits, b.trace,
                    gradient ? fw::Pass::train : fw::Pass::infer);
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const auto logits = b.logits.middleCols(static_cast<fw::Index>(i) * length, length);
      const long right = count_right(logits, sequences[i].targets);
      score.right += right;
      score.complete += right == count_answers(sequences[i]);
    }
    score.loss = static_cast<double>(fw::cross_entropy(
        b.logits, b.targets, b.logits,
        {.ignore_index = no_answer, .weights = b.weights, .divisor = static_cast<double>(batch)}));
    if (gradient)
      network.backward(b.input, b.trace, b.logits, static_cast<LanguageModel&>(*gradient).network);
    return score;
  }
};

extern template struct fw::LanguageModel<AnyBlock<float>>;
extern template class LanguageModel<float>;
extern template class LanguageModel<double>;  // the tests instantiate it
