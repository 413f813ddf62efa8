#pragma once

#include <fastweights/continuous/density.hpp>
#include <fastweights/layers/joined_attention.hpp>
#include <fastweights/layers/relative_attention.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <stdexcept>

#include "models/language_model.hpp"
#include "models/sorting/sorting_network.hpp"

/// \file
/// Defines make_sorting_model, for the sources that instantiate it.

template <class S> using Density = fw::MixtureDensity<S, fw::LearnedComponents<S>>;
/// The long-term layer of the ∞-former.
template <class S, class Sampling>
using ContinuousLayer =
    fw::LongTermLayer<fw::ContinuousMemory<S, Density<S>, fw::GaussianBasis<S>, Sampling>>;

template <class S, class Sampling>
ContinuousLayer<S, Sampling> continuous_layer(const SortingOptions& o) {
  using Memory = decltype(ContinuousLayer<S, Sampling>::memory);
  const typename Memory::Options m{.d = o.width,
                                   .heads = o.heads,
                                   .chunk = o.chunk,
                                   .samples = Memory::sticky ? o.sticky : o.samples,
                                   .contraction = {o.tau},
                                   .regression = {.ridge = o.ridge}};
  return {{.heads = o.heads},
          Memory(m, fw::GaussianBasis<S>(o.functions, o.widths),
                 Density<S>{fw::LearnedComponents<S>(o.functions)}),
          {}};
}
template <class S> auto compressive_layer(const SortingOptions& o) {
  using Memory = fw::CompressiveMemory<S>;
  const Memory memory(
      {.d = o.width, .heads = o.heads, .chunk = o.chunk, .capacity = o.functions, .rate = o.rate});
  return fw::LongTermLayer<Memory>({.heads = o.heads}, memory, {});
}

template <class S>
fw::networks::Value<S> short_term(const fw::networks::Value<S>& x, const std::string& name,
                                  const SortingOptions& o) {
  return relative_attention(x, name, {.heads = o.heads, .window = o.window});
}
/// The mixer around a long-term memory.
template <class S, class Long>
fw::networks::Value<S> long_term_mixer(const fw::networks::Value<S>& x, const SortingOptions& o,
                                       Long layer) {
  return joined_attention(x, short_term(x, "short_term", o), std::move(layer), {o.window, o.chunk});
}

/// The mixers around the ∞-former's memories, in a source of their own.
template <class S, class Sampling>
fw::networks::Value<S> continuous_mixer(const fw::networks::Value<S>& x, const SortingOptions& o) {
  return long_term_mixer(x, o, continuous_layer<S, Sampling>(o));
}
#define SORTING_MIXERS(prefix, S)                                                 \
  prefix template fw::networks::Value<S> continuous_mixer<S, fw::EvenSampling>(   \
      const fw::networks::Value<S>&, const SortingOptions&);                      \
  prefix template fw::networks::Value<S> continuous_mixer<S, fw::StickySampling>( \
      const fw::networks::Value<S>&, const SortingOptions&)
SORTING_MIXERS(extern, float);
SORTING_MIXERS(extern, double);

template <class S> Mixer<S> sorting_mixer(const std::string& kind, const SortingOptions& o) {
  using Value = fw::networks::Value<S>;
  if (kind == "cache") return [=](const Value& x) { return short_term(x, "short_term", o); };
  if (kind == "compressive")
    return [=](const Value& x) { return long_term_mixer(x, o, compressive_layer<S>(o)); };
  if (kind == "continuous")
    return [=](const Value& x) { return continuous_mixer<S, fw::EvenSampling>(x, o); };
  if (kind == "sticky")
    return [=](const Value& x) { return continuous_mixer<S, fw::StickySampling>(x, o); };
  throw std::invalid_argument("there is no model '" + kind +
                              "': expected cache, compressive, continuous or sticky");
}

/// A table of vectors whose entries start normal.
template <class S> fw::networks::Network<S> normal_table(fw::Index symbols, fw::Index width) {
  fw::networks::Builder<S> net;
  fw::networks::Network<S> network = net.build(embedding(net, "table", symbols, width));
  network.weights[0].initialiser = [](double, double normal) { return normal; };
  return network;
}

template <class S>
std::unique_ptr<SortingModel> make_sorting_model(const std::string& kind, const SortingOptions& o) {
  const auto make = [&](const std::string& mixer, fw::Index hidden) {
    fw::networks::Builder<S> net;
    const LanguageModelSizes sizes{fw::Index{sort_symbols}, o.layers, o.width, hidden};
    auto model = std::make_unique<TrainedSorting<S>>(SortingNetworks<S>{
        normal_table<S>(sort_vocabulary + long{sort_symbols}, o.width),
        normal_table<S>(sort_symbols, o.width),
        net.build(language_layers(net.input(o.width), sizes, sorting_mixer<S>(mixer, o)))});
    fw::Random random(1);
    model->initialise(random);
    return model;
  };
  auto model = make(kind, o.hidden);
  if (kind != "cache") return model;
  const long wanted = parameter_count(*make("continuous", o.hidden));
  const fw::Index more = (wanted - parameter_count(*model)) / (o.layers * (2 * o.width + 1));
  return make("cache", o.hidden + more);
}
