#include "models/characters/generation.hpp"

#include <cmath>
#include <span>

Stream::Stream(const LanguageModel<float>& model)
    : network_(model.network),
      state_(network_.initial_state()),
      logits_(Eigen::MatrixXf::Zero(network_.outputs(), 1)) {}

const Eigen::MatrixXf& Stream::read(int symbol) {
  network_.forward(state_, std::span(&symbol, 1), logits_, trace_);
  return logits_;
}

int Stream::draw(fw::Random& random, double temperature) const {
  const Eigen::VectorXd weight =
      ((logits_.col(0).cast<double>().array() - double(logits_.maxCoeff())) / temperature).exp();
  double left = random.uniform() * weight.sum();
  fw::Index symbol = 0;
  while (symbol + 1 < weight.size() && left >= weight[symbol]) left -= weight[symbol++];
  return static_cast<int>(symbol);
}

Eigen::MatrixXf parallel_logits(const LanguageModel<float>& model, fw::Symbols symbols) {
  auto state = model.network.initial_state();
  LanguageModel<float>::Network::Trace trace;
  Eigen::MatrixXf logits(model.network.outputs(), static_cast<fw::Index>(symbols.size()));
  model.network.forward(state, symbols, logits, trace);
  return logits;
}
