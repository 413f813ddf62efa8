#pragma once

#include "models/algorithmic/convolved.hpp"
#include "models/algorithmic/task_mixers.hpp"
#include "models/language_model.hpp"

/// \file
/// Defines make_task_model, for the sources that instantiate it.

template <class S> AnyLayer<S> task_mixer(const std::string& kind, const TaskModelOptions& o) {
  if (kind == "rnn") return plain_rnn_mixer<S>(o);
  if (kind == "sum") return sum_mixer<S>(o);
  if (kind == "delta") return delta_mixer<S>(o);
  return recurrent_mixer<S>(kind, o);
}

template <class S>
std::unique_ptr<SequenceModel> make_task_model(const std::string& kind, TaskModelOptions o) {
  if (o.width % o.heads != 0)
    throw std::invalid_argument("the width is " + std::to_string(o.width) +
                                ", expected a multiple of the " + std::to_string(o.heads) +
                                " heads");
  // The plain RNN has fewer parameters than a memory with its projections: its feed-forward layers
  // are larger.
  if (kind == "rnn") o.hidden += o.width;
  const Convolved<AnyLayer<S>> mixer(task_mixer<S>(kind, o), o.convolution);
  return std::make_unique<LanguageModel<S>>(o.symbols, o.layers, mixer, o.hidden);
}
