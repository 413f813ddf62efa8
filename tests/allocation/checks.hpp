#pragma once

/// Functions shared by the files of this folder, and the checks that each file implements.

#include <cstdio>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/testing/sequences.hpp>
#include <string>
#include <tuple>

#include "counter.hpp"

using fw::Dynamic;
using fw::Index;

constexpr Index sequence_length = 100;
inline Index pass_count = 100;  // of one sequence: 10⁴ steps
inline int failures = 0;

void check_fixed_memories();
void check_dynamic_memories();
void check_delta_family();
void check_state_spaces();
void check_learners();
void check_inner_models();
void check_token_attention();
void check_feature_mapped();
void check_layers();
void check_models();
void check_networks();
void check_chunked_memories();

template <class M> auto token(const M& m, fw::testing::Sequences<M>& all, Index t) {
  const auto signature = m.signature();
  const auto at = [t]<class Token>(const auto& views, const auto& extents) {
    return fw::detail::token_at<Token>(views, extents, t);
  };
  return std::make_tuple(at.template operator()<fw::WriteToken<M>>(
                             fw::view<fw::WriteSequence<M>>(all.inputs), signature.write()),
                         at.template operator()<fw::ReadToken<M>>(
                             fw::view<fw::ReadSequence<M>>(all.queries), signature.read()),
                         at.template operator()<fw::OutToken<M>>(
                             fw::view<fw::OutSequence<M>>(all.outputs), signature.out()));
}

template <class M> std::string label(const M& m, const char* variant) {
  const auto signature = m.signature();
  const bool fixed = decltype(fw::OutToken<M>::output)::RowsAtCompileTime != Dynamic;
  std::string sizes;
  if constexpr (requires { signature.dv; })
    sizes = " d_v " + std::to_string(signature.dv) + " d_k " + std::to_string(signature.dk);
  else
    sizes = " d " + std::to_string(signature.d);
  return std::string(M::name) + " " + variant + sizes + (fixed ? " fixed" : " dynamic");
}

// Calls f(state, t) for every token of every pass.
template <class M, class F> Usage usage_of_passes(const M& m, const F& f) {
  auto state = fw::initial_state(m);
  return usage_of([&] {
    for (Index pass = 0; pass < pass_count; ++pass) {
      fw::set_zero(state);
      for (Index t = 0; t < sequence_length; ++t) f(state, t);
    }
  });
}

inline std::string text(const Usage& u) {
  return std::to_string(u.allocations) + " allocations, " + std::to_string(u.locks) + " locks, " +
         (can_watch_system_calls() ? std::to_string(u.system_calls) : std::string("?")) +
         " system calls";
}

inline void report(const std::string& what, const Usage& stepping, const Usage& apart) {
  std::printf("%-72s %s in steps; %s in writes and reads\n", what.c_str(), text(stepping).c_str(),
              text(apart).c_str());
  if (!stepping.none() || !apart.none()) ++failures;
}

template <class M> void check(const M& m, const char* variant = "") {
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, sequence_length, random, /*positive=*/true);
  const Usage stepping = usage_of_passes(m, [&](auto& state, Index t) {
    const auto [input, query, output] = token(m, all, t);
    fw::step(m, state, input, query, output);
  });
  const Usage apart = usage_of_passes(m, [&](auto& state, Index t) {
    const auto [input, query, output] = token(m, all, t);
    fw::write(m, state, input);
    fw::read(m, state, query, output);
  });
  report(label(m, variant), stepping, apart);
}
