#pragma once

#include <cmath>
#include <fastweights/fastweights.hpp>
#include <span>

/// Streams a model one symbol at a time: what it has read is in its state alone.
template <class Model> class Stream {
 public:
  explicit Stream(const Model& model)
      : model_(model),
        state_(model.initial_state()),
        logits_(Eigen::MatrixXf::Zero(model.symbols(), 1)) {}

  /// Reads one symbol and predicts the next.
  const Eigen::MatrixXf& read(int symbol) {
    model_.forward(state_, std::span(&symbol, 1), logits_, trace_);
    return logits_;
  }

  /// Draws a symbol from the last prediction; the lower the temperature, the surer.
  int draw(fw::Random& random, double temperature) const {
    const Eigen::VectorXd weight =
        ((logits_.col(0).cast<double>().array() - double(logits_.maxCoeff())) / temperature).exp();
    double left = random.uniform() * weight.sum();
    fw::Index symbol = 0;
    while (symbol + 1 < weight.size() && left >= weight[symbol]) left -= weight[symbol++];
    return static_cast<int>(symbol);
  }

 private:
  const Model& model_;
  typename Model::State state_;
  typename Model::Trace trace_;
  Eigen::MatrixXf logits_;
};
