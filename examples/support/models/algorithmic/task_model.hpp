#pragma once

#include <fastweights/layers/layer.hpp>
#include <memory>
#include <string>

#include "models/kinds.hpp"
#include "training/sequence_model.hpp"

/// \file
/// The models that learn the algorithmic tasks: the same network around different memories, without
/// positions, so that they differ in their memory alone.

struct TaskModelOptions {
  fw::Index symbols = 0;
  fw::Index layers = 2, width = 64, heads = 4, hidden = 256;
  fw::Index convolution = 0;  ///< over how many tokens, before each memory; 0: none
};

inline const Kinds task_model_kinds{{"rnn", "plain RNN"},
                                    {"sum", "sum rule"},
                                    {"delta", "delta rule"},
                                    {"delta-rnn", "Delta RNN"},
                                    {"delta-lstm", "Delta LSTM"},
                                    {"recurrent-delta", "recurrent delta net"},
                                    {"self-referential", "self-referential matrix"}};

/// A model of that kind, its parameters still zero. Throws std::invalid_argument where there is
/// none. The tests have models of double.
template <class S = float>
std::unique_ptr<SequenceModel> make_task_model(const std::string& kind, TaskModelOptions o);
