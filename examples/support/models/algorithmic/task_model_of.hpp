#pragma once

#include <fastweights/any_memory/table.hpp>
#include <fastweights/any_memory/table/sums.hpp>
#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/layers/self_referential.hpp>
#include <stdexcept>

#include "models/algorithmic/task_model.hpp"
#include "models/language_model.hpp"

/// \file
/// Defines make_task_model, for the sources that instantiate it.

/// The mixer of a kind.
template <class S>
fw::networks::Value<S> task_mixer(const fw::networks::Value<S>& x, const std::string& kind,
                                  const TaskModelOptions& o) {
  using namespace fw::networks;
  using Map = fw::SumNormalised<fw::EluPlusOne>;
  const fw::networks::FastWeightsOptions heads{.heads = o.heads};
  const fw::MemoryOptions size{.key_size = o.width / o.heads};
  const auto layer = [&](std::string_view memory, const auto& map) {
    return fast_weights(x, "mixer", fw::make_memory<S>(memory, size), heads, map);
  };
  using Sum = fw::LinearAttention<S, fw::Dynamic, fw::Dynamic, fw::AttentionNormaliser<S>>;
  if (kind == "rnn") return rnn(x, "mixer", o.width);
  if (kind == "sum")
    return fast_weights(x, "mixer", Sum({.key_size = size.key_size}), heads, fw::EluPlusOne());
  if (kind == "delta") return layer("DeltaRule", Map());
  if (kind == "delta-rnn") return layer("DeltaRnn", Map());
  if (kind == "delta-lstm") return layer("DeltaLstm", Map());
  if (kind == "recurrent-delta") return layer("RecurrentDeltaNet", fw::IdentityMap());
  if (kind == "self-referential") return self_referential(x, "mixer", o.heads);
  throw std::invalid_argument("there is no model '" + kind + "'");
}

/// A memory by itself does not know the order of tokens; a short convolution joins neighbours.
template <class S>
fw::networks::Value<S> convolved_task_mixer(const fw::networks::Value<S>& x,
                                            const std::string& kind, const TaskModelOptions& o) {
  if (o.convolution == 0) return task_mixer(x, kind, o);
  return task_mixer(convolution(x, "conv", o.convolution, true), kind, o);
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
  return std::make_unique<LanguageModel<S>>(language_network<S>(
      {.symbols = o.symbols, .layers = o.layers, .width = o.width, .hidden = o.hidden},
      [&](const fw::networks::Value<S>& x) { return convolved_task_mixer(x, kind, o); }));
}
