#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/continuous/components.hpp>
#include <fastweights/continuous/density.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

// The options that every continuous memory has. 64 samples are 6 for each width of the Gaussians
// below; slots take as many as follow from their number.
template <class M, class Options>
typename M::Options continuous_options(Options& o, Index samples) {
  typename M::Options options;
  options.d = o.size();
  options.heads = o.integer("heads", 1);
  options.chunk = o.integer("chunk", 1);
  options.samples = o.integer("samples", samples);  // 0: chosen
  const double tau = o.number("tau", 0);            // 0: an even share for every token
  const Index horizon = o.integer("horizon", 0);    // 0: none
  options.contraction = {tau, horizon > 0 ? horizon : max_count};
  options.regression.ridge = o.number("ridge", options.samples == 0 ? 0 : 0.1);  // 0: chosen
  options.regression.padding = o.number("padding", 0.5);
  options.regression.parity = o.flag("parity", false);
  options.backpropagate =
      o.flag("gradients_of_the_past", true) ? Backpropagate::past : Backpropagate::chunk;
  return options;
}

// A density with learned components, which start at random.
template <class Options>
MixtureDensity<double, LearnedComponents<double>> learned_density(Options& o, Index functions) {
  Random random(static_cast<std::uint64_t>(o.integer("seed", 5)));
  MixtureDensity<double, LearnedComponents<double>> density{
      LearnedComponents<double>(functions, o.integer("components", 1), true, 1e-3)};
  density.components.initialise(random);
  density.components.variance_bias.setConstant(o.number("variance_bias", -3));
  return density;
}

// Gaussians of two widths, or of one.
template <class Sampling, class Options>
auto gaussian_memory(Options& o, const Sampling& sampling) {
  using Density = MixtureDensity<double, LearnedComponents<double>>;
  using M = ContinuousMemory<double, Density, GaussianBasis<double>, Sampling>;
  auto options = continuous_options<M>(o, 64);
  options.sampling = sampling;
  const Index functions = o.integer("functions", 64);
  std::vector<double> widths = {o.number("narrow", 0.1), o.number("wide", 0.3)};
  if (widths[0] == widths[1]) widths.pop_back();
  return M(options, {functions, widths}, learned_density(o, functions));
}

/// The ∞-former's memory: a signal on [0, 1].
template <class S> void add_continuous(MemoryTable<S>& table) {
  constexpr MemoryFacts square{.square = true};
  table.add(
      "ContinuousMemory",
      [](auto& o) { return gaussian_memory(o, EvenSampling()).template cast<S>(); }, square);
  table.add(
      "StickyContinuousMemory",
      [](auto& o) {
        StickySampling sampling;
        sampling.bins = o.integer("bins", 128);
        if (o.flag("published_sampling", false)) sampling.scheme = SamplingScheme::published;
        return gaussian_memory(o, sampling).template cast<S>();
      },
      square);
  table.add(
      "SlotContinuousMemory",
      [](auto& o) {
        using M = ContinuousMemory<S, GibbsDensity<S>, RectangularBasis<S>>;
        const RectangularBasis<S> basis(o.integer("functions", 64));
        return M(continuous_options<M>(o, 0), basis, GibbsDensity<S>(basis));
      },
      square);
}

}  // namespace fw::detail
