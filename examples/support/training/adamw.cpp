#include "training/adamw.hpp"

#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

AdamW::AdamW(const TrainedModel& model, const fw::AdamWOptions& options)
    : first(model.clone()), second(model.clone()), options_(options) {
  set_zero(*first);
  set_zero(*second);
}

void AdamW::step(TrainedModel& model, TrainedModel& gradient, double learning_rate) {
  const double norm = gradient_norm(gradient);
  if (!std::isfinite(norm))
    throw std::runtime_error("AdamW: the gradient's norm is " + std::to_string(norm) + " at step " +
                             std::to_string(steps + 1));
  const auto t = static_cast<double>(++steps);
  const fw::detail::AdamWStep update{
      .beta1 = options_.beta1,
      .beta2 = options_.beta2,
      .bias1 = 1 - std::pow(options_.beta1, t),
      .bias2 = 1 - std::pow(options_.beta2, t),
      .clip_scale = options_.clip > 0 && norm > options_.clip ? options_.clip / norm : 1,
      .rate = learning_rate,
      .weight_decay = options_.weight_decay,
      .epsilon = options_.epsilon};
  fw::detail::visit_parameters<float>(
      std::array{model.parameters(), gradient.parameters(), first->parameters(),
                 second->parameters()},
      [&](const fw::detail::Leaf* leaves) { update.update<float>(leaves); });
}
