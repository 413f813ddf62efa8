#pragma once

#include <fastweights/fastweights.hpp>
#include <stdexcept>

#include "models/sorting/sorting_network.hpp"

/// \file
/// Defines make_sorting_model, for the sources that instantiate it.

template <class S> using Density = fw::MixtureDensity<S, fw::LearnedComponents<S>>;
template <class S, class Sampling>
using Continuous = fw::ContinuousMemory<S, Density<S>, fw::GaussianBasis<S>, Sampling>;
/// The mixer around a long-term memory.
template <class Memory>
using LongTermMixer =
    fw::JoinedAttention<AnyLayer<typename Memory::Scalar>, fw::LongTermLayer<Memory>>;

template <class S> AnyLayer<S> short_term_mixer(const SortingOptions& o) {
  return fw::RelativeAttention<S>({.d_model = o.width, .heads = o.heads, .window = o.window});
}

template <class Memory>
AnyLayer<typename Memory::Scalar> long_term_mixer(const SortingOptions& o, Memory memory) {
  return LongTermMixer<Memory>(short_term_mixer<typename Memory::Scalar>(o),
                               fw::LongTermLayer<Memory>({.heads = o.heads}, std::move(memory), {}),
                               o.window, o.chunk);
}

template <class S, class Sampling> AnyLayer<S> continuous_mixer(const SortingOptions& o) {
  using Memory = Continuous<S, Sampling>;
  const typename Memory::Options m{.d = o.width,
                                   .heads = o.heads,
                                   .chunk = o.chunk,
                                   .samples = Memory::sticky ? o.sticky : o.samples,
                                   .contraction = {o.tau},
                                   .regression = {.ridge = o.ridge}};
  return long_term_mixer(o, Memory(m, fw::GaussianBasis<S>(o.functions, o.widths),
                                   Density<S>{fw::LearnedComponents<S>(o.functions)}));
}

extern template AnyLayer<float> short_term_mixer<float>(const SortingOptions&);
extern template AnyLayer<float> continuous_mixer<float, fw::EvenSampling>(const SortingOptions&);
extern template AnyLayer<float> continuous_mixer<float, fw::StickySampling>(const SortingOptions&);
extern template AnyLayer<double> short_term_mixer<double>(const SortingOptions&);
extern template AnyLayer<double> continuous_mixer<double, fw::EvenSampling>(const SortingOptions&);
extern template AnyLayer<double> continuous_mixer<double, fw::StickySampling>(
    const SortingOptions&);

template <class S> AnyLayer<S> compressive_mixer(const SortingOptions& o) {
  return long_term_mixer(o, fw::CompressiveMemory<S>({.d = o.width,
                                                      .heads = o.heads,
                                                      .chunk = o.chunk,
                                                      .capacity = o.functions,
                                                      .rate = o.rate}));
}

template <class S>
std::unique_ptr<SortingModel> make_sorting_model(const std::string& kind, const SortingOptions& o) {
  const auto make = [&](AnyLayer<S> mixer, fw::Index hidden) {
    return std::make_unique<TrainedSorting<S>>(SortingNetwork<S>(
        o.layers, AnyBlock<S>(std::move(mixer), fw::FeedForward<S>(o.width, hidden))));
  };
  if (kind == "continuous") return make(continuous_mixer<S, fw::EvenSampling>(o), o.hidden);
  if (kind == "sticky") return make(continuous_mixer<S, fw::StickySampling>(o), o.hidden);
  if (kind == "compressive") return make(compressive_mixer<S>(o), o.hidden);
  if (kind != "cache")
    throw std::invalid_argument("there is no model '" + kind +
                                "': expected cache, compressive, continuous or sticky");
  const long wanted = parameter_count(*make(continuous_mixer<S, fw::EvenSampling>(o), o.hidden));
  const long given = parameter_count(*make(short_term_mixer<S>(o), o.hidden));
  const fw::Index more = (wanted - given) / (o.layers * (2 * o.width + 1));
  return make(short_term_mixer<S>(o), o.hidden + more);
}
