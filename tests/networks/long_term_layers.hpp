#pragma once

#include <fastweights/continuous/density.hpp>
#include <fastweights/layers/attention/strided_conv.hpp>
#include <fastweights/layers/joined_attention.hpp>
#include <fastweights/layers/relative_attention.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

#include "networks/operation_checks.hpp"

/// \file
/// Small networks around every kind of long-term memory.

namespace long_term {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;

template <class S> using Density = fw::MixtureDensity<S, fw::LearnedComponents<S>>;
template <class S, class Sampling>
using Continuous = fw::ContinuousMemory<S, Density<S>, fw::GaussianBasis<S>, Sampling>;

constexpr Index d = 4, chunk = 2, window = 3, heads = 2;

template <class S, class Sampling = fw::EvenSampling>
Continuous<S, Sampling> continuous(Index components = 1) {
  typename Continuous<S, Sampling>::Options o;
  o.d = d;
  o.chunk = chunk;
  o.samples = 5;
  o.regression.ridge = 0.1;
  o.backpropagate = fw::Backpropagate::past;
  return {o, {5, {0.1, 0.3}}, Density<S>{fw::LearnedComponents<S>(5, components, true, 1e-3)}};
}

// The long-term layers that are checked.
const auto even = [](auto s) {
  using S = decltype(s);
  return fw::LongTermLayer({.heads = heads}, continuous<S>(2), fw::NoGate<S>());
};
const auto sticky = [](auto s) {
  using S = decltype(s);
  return fw::LongTermLayer({.heads = heads}, continuous<S, fw::StickySampling>(),
                           fw::ConvGate<S>(d));
};
const auto affine_gate = [](auto s) {
  using S = decltype(s);
  return fw::LongTermLayer({.heads = 1}, continuous<S>(), fw::AffineGate<S>(chunk));
};
const auto compressive = [](auto s) {
  using S = decltype(s);
  return fw::LongTermLayer({.heads = heads}, fw::CompressiveMemory<S>({d, 1, chunk, 3, 1}),
                           fw::StridedConv<S>(d, 2));
};
const auto pooling = [](auto s) {
  using S = decltype(s);
  return fw::LongTermLayer({.heads = heads}, fw::CompressiveMemory<S>({d, 1, chunk, 3, 2}),
                           fw::NoGate<S>());
};

// Scalars of these networks: not float, in which each of them compiles for 2 s more.
template <class X>
concept Wide = !std::is_same_v<ScalarOf<X>, float>;

template <class Long> auto joined(const Long& long_term, Join join = Join::sum) {
  return [=](const Wide auto& x) {
    const auto near =
        relative_attention(x, "short_term", {.heads = heads, .window = window, .bias = true});
    return joined_attention(x, near, long_term(ScalarOf<decltype(x)>()), {window, chunk}, join);
  };
}
template <class Long> auto alone(const Long& long_term) {
  return [=](const Wide auto& x) {
    return long_term_attention(x, linear(x, "query", d), "long_term",
                               long_term(ScalarOf<decltype(x)>()), {window, chunk});
  };
}

template <class Long> void check(const Long& long_term) {
  check_operation(d, joined(long_term));
  const Net network = network_of(d, joined(long_term, Join::alpha));
  check_gradients(network, joined(long_term, Join::alpha), 9);
  const Net one = network_of(d, alone(long_term));
  check_streaming(one);
  check_gradients(one, alone(long_term), 9);
  check_state_gradient(one, alone(long_term), 9);  // writes what the state has
}

}  // namespace long_term
