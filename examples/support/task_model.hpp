#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "convolved.hpp"
#include "kinds.hpp"

/// \file
/// The models that learn the algorithmic tasks: the same network around different memories, without
/// positions, so that they differ in their memory alone.

struct TaskModelOptions {
  fw::Index symbols = 0;
  fw::Index layers = 2, width = 64, heads = 4, hidden = 256;
  fw::Index convolution = 0;  ///< over how many tokens, before each memory; 0: none
};

template <class Mixer>
using TaskBlock = fw::PreNormBlock<fw::LayerNorm<typename Mixer::Scalar>, Convolved<Mixer>,
                                   fw::FeedForward<typename Mixer::Scalar>>;

template <class Mixer>
fw::LanguageModel<TaskBlock<Mixer>> task_model(const TaskModelOptions& o, const Mixer& mixer) {
  return {o.symbols, o.layers,
          TaskBlock<Mixer>(Convolved(mixer, o.convolution),
                           fw::FeedForward<typename Mixer::Scalar>(o.width, o.hidden))};
}

inline const Kinds task_model_kinds{{"rnn", "plain RNN"},
                                    {"sum", "sum rule"},
                                    {"delta", "delta rule"},
                                    {"delta-rnn", "Delta RNN"},
                                    {"delta-lstm", "Delta LSTM"},
                                    {"recurrent-delta", "recurrent delta net"},
                                    {"self-referential", "self-referential matrix"}};

/// The plain recurrent network in a memory's place, of as many units as the model is wide. What it
/// has fewer parameters than a memory with its projections, its feed-forward layers have more.
template <class S> auto plain_rnn_model(TaskModelOptions o) {
  o.hidden += o.width;
  return task_model(o, fw::Rnn<S>(o.width, o.width));
}

/// Calls f with a model of that kind, its parameters still zero. Throws std::invalid_argument where
/// there is none.
template <class S = float, class F>
auto with_task_model(const std::string& kind, const TaskModelOptions& o, const F& f) {
  if (o.width % o.heads != 0)
    throw std::invalid_argument("the width is " + std::to_string(o.width) +
                                ", expected a multiple of the " + std::to_string(o.heads) +
                                " heads");
  using Map = fw::SumNormalised<fw::EluPlusOne>;
  const fw::FastWeightOptions layer{.d_model = o.width, .heads = o.heads};
  const fw::Index d = o.width / o.heads;
  const auto around = [&]<class M>(const M& memory, auto map) {
    return f(task_model(o, fw::FastWeightLayer<M, decltype(map)>(layer, memory, map)));
  };
  if (kind == "rnn") return f(plain_rnn_model<S>(o));
  if (kind == "sum") {
    using M = fw::LinearAttention<S, -1, -1, fw::AttentionNormaliser<S>>;
    return around(M({.key_size = d}), fw::EluPlusOne());
  }
  if (kind == "delta") return around(fw::DeltaRule<S>({.key_size = d}), Map());
  if (kind == "delta-rnn") return around(fw::DeltaRnn<S>({.key_size = d}), Map());
  if (kind == "delta-lstm") return around(fw::DeltaLstm<S>({.key_size = d}), Map());
  if (kind == "recurrent-delta")
    return around(fw::RecurrentDeltaNet<S>({.key_size = d}), fw::IdentityMap());
  if (kind == "self-referential")
    return f(task_model(o, fw::SelfReferentialLayer<S>({.d_model = o.width, .heads = o.heads})));
  throw std::invalid_argument("there is no model '" + kind + "'");
}
