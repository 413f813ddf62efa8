#pragma once

#include "models/language_model.hpp"

/// Streams a model one symbol at a time. All that it has read is in its state.
class Stream {
 public:
  explicit Stream(const LanguageModel<float>& model);

  /// Reads one symbol and predicts the next.
  const Eigen::MatrixXf& read(int symbol);

  /// Draws a symbol from the last prediction; at a lower temperature more often the likeliest.
  int draw(fw::Random& random, double temperature) const;

 private:
  using Network = LanguageModel<float>::Network;

  const Network& network_;
  Network::State state_;
  Network::Trace trace_;
  Eigen::MatrixXf logits_;
};

/// The logits of all symbols in one call, symbols×T.
Eigen::MatrixXf parallel_logits(const LanguageModel<float>& model, fw::Symbols symbols);
