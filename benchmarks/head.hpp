#pragma once

#include <algorithm>
#include <fastweights/algorithms/backward.hpp>
#include <fastweights/testing/sequences.hpp>
#include <vector>

/// \file
/// What is measured: heads with tokens for them, and what is done with a head.

namespace measure {

using fw::Dynamic;
using fw::Index;

inline constexpr Index heads = 8, length = 4096;

/// One head: its state, `steps` tokens for it, and their gradients.
template <class M> struct Head {
  using Sequences = fw::testing::Sequences<M>;
  fw::StateOf<M> state;
  Sequences all;
  fw::Checkpoints<M> kept;
  Sequences gradients;

  Head(const M& m, Index steps) : state(fw::initial_state(m)), all(sequences(m, steps)) {}

  void scan(const M& m) {
    scan_by([&](const auto&... views) { fw::scan(m, state, views...); });
  }
  /// f(inputs, queries, outputs), a scan of `state`.
  template <class F> void scan_by(const F& f) {
    fw::set_zero(state);
    f(inputs(), queries(), outputs());
  }
  void chunked_scan(const M& m) {
    fw::set_zero(state);
    fw::chunked_scan(m, state, inputs(), queries(), outputs());
  }
  void step(const M& m) {
    const auto signature = m.signature();
    const auto first = []<class Token>(const auto& views, const auto& extents) {
      return fw::detail::token_at<Token>(views, extents, 0);
    };
    fw::step(m, state, first.template operator()<fw::WriteToken<M>>(inputs(), signature.write()),
             first.template operator()<fw::ReadToken<M>>(queries(), signature.read()),
             first.template operator()<fw::OutToken<M>>(outputs(), signature.out()));
  }

  /// What backward needs of the forward pass.
  void prepare_backward(const M& m) {
    fw::set_zero(state);
    fw::scan(m, state, inputs(), queries(), outputs(), kept);
    gradients = all;
  }
  void backward(const M& m) {
    fw::set_zero(state);  // the gradient of the final state
    fw::backward(m, kept, inputs(), queries(), fw::view<fw::OutGradSequence<M>>(gradients.outputs),
                 state, fw::view<fw::WriteGradSequence<M>>(gradients.inputs),
                 fw::view<fw::ReadGradSequence<M>>(gradients.queries));
  }

 private:
  static Sequences sequences(const M& m, Index steps) {
    fw::Random random(1);
    return fw::testing::random_sequences(m, steps, random, /*positive=*/true);
  }
  auto inputs() { return fw::view<fw::WriteSequence<M>>(all.inputs); }
  auto queries() { return fw::view<fw::ReadSequence<M>>(all.queries); }
  auto outputs() { return fw::view<fw::OutSequence<M>>(all.outputs); }
};

template <class M> std::vector<Head<M>> all_heads(const M& m, Index steps, Index count = heads) {
  return std::vector<Head<M>>(static_cast<std::size_t>(count), Head<M>(m, steps));
}

/// Heads in the middle of a stream: a cache is full when its steps are measured.
template <class M> std::vector<Head<M>> streaming_heads(const M& m, Index count = heads) {
  auto all = all_heads(m, 1, count);
  Head<M> used(m, length);
  used.scan(m);
  for (auto& head : all) head.state = used.state;
  return all;
}

/// As many tokens of at most `steps` as make `flops` at `each` a token; enough to be a sequence.
inline Index tokens_for(double flops, double each, Index steps) {
  return std::min(steps, std::max<Index>(64, static_cast<Index>(flops / each)));
}

}  // namespace measure
