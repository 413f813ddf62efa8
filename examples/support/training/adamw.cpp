#include "training/adamw.hpp"

AdamW::AdamW(const TrainedModel& model, const fw::AdamWOptions& options)
    : first(model.clone()), second(model.clone()), options_(options) {
  set_zero(*first);
  set_zero(*second);
}

void AdamW::step(TrainedModel& model, TrainedModel& gradient, double learning_rate) {
  fw::detail::adamw_step<float>(
      {model.parameters(), gradient.parameters(), first->parameters(), second->parameters()},
      options_, steps, learning_rate);
}
