#pragma once

#include <fastweights/fastweights.hpp>
#include <stdexcept>
#include <string>

#include "models/algorithmic/task_model.hpp"
#include "models/any_layer.hpp"

/// \file
/// Defines the mixers of the task models, for the sources that instantiate them.

template <class S, class M, class Map>
AnyLayer<S> task_layer(const TaskModelOptions& o, const M& memory, Map map) {
  return fw::FastWeightLayer<M, Map>({.d_model = o.width, .heads = o.heads}, memory, map);
}

template <class S> AnyLayer<S> plain_rnn_mixer(const TaskModelOptions& o) {
  return fw::Rnn<S>(o.width, o.width);
}

template <class S> AnyLayer<S> sum_mixer(const TaskModelOptions& o) {
  const fw::Index d = o.width / o.heads;
  using M = fw::LinearAttention<S, -1, -1, fw::AttentionNormaliser<S>>;
  return task_layer<S>(o, M({.key_size = d}), fw::EluPlusOne());
}

template <class S> AnyLayer<S> delta_mixer(const TaskModelOptions& o) {
  const fw::Index d = o.width / o.heads;
  return task_layer<S>(o, fw::DeltaRule<S>({.key_size = d}), fw::SumNormalised<fw::EluPlusOne>());
}

/// The memories with a recurrence of their own.
template <class S> AnyLayer<S> recurrent_mixer(const std::string& kind, const TaskModelOptions& o) {
  using Map = fw::SumNormalised<fw::EluPlusOne>;
  const fw::Index d = o.width / o.heads;
  if (kind == "delta-rnn") return task_layer<S>(o, fw::DeltaRnn<S>({.key_size = d}), Map());
  if (kind == "delta-lstm") return task_layer<S>(o, fw::DeltaLstm<S>({.key_size = d}), Map());
  if (kind == "recurrent-delta")
    return task_layer<S>(o, fw::RecurrentDeltaNet<S>({.key_size = d}), fw::IdentityMap());
  if (kind == "self-referential")
    return fw::SelfReferentialLayer<S>({.d_model = o.width, .heads = o.heads});
  throw std::invalid_argument("there is no model '" + kind + "'");
}

extern template AnyLayer<float> recurrent_mixer<float>(const std::string&, const TaskModelOptions&);
extern template AnyLayer<double> recurrent_mixer<double>(const std::string&,
                                                         const TaskModelOptions&);
