#pragma once

#include <fastweights/io/weights.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>

#include "support/laws.hpp"

/// \file
/// Draft tokens of a deferred memory are written and taken back.

using fw::Deferred;
using fw::Dynamic;
using fw::Index;

template <class D> auto bytes_of(const fw::StateOf<D>& state) {
  fw::io::SafeTensorsWriter file;
  fw::io::add_state(file, state, "state");
  return file.bytes();
}

template <class D, class All>
void run_steps(const D& m, fw::StateOf<D>& s, All& all, Index first, Index end) {
  for (Index t = first; t < end; ++t) {
    const auto [input, query, output] = laws::tokens(m, all, t);
    fw::step(m, s, input, query, output);
  }
}

// A stream of tokens, each after 0 to R drafts that are taken back, against the plain rule.
template <int N, int R, class M> void drafts_leave_no_trace(const M& plain, bool positive = false) {
  using D = Deferred<M, N, typename M::Scalar, R>;
  const D m(plain);
  const Index steps = 3 * N + 2 * R + 3;
  fw::Random random(3), again(3), other(4);
  auto all = fw::testing::random_sequences(m, steps, random, positive);
  auto expected = fw::testing::random_sequences(plain, steps, again, positive);
  auto drafts = fw::testing::random_sequences(m, R, other, positive);
  auto state = fw::initial_state(m);
  auto truth = fw::initial_state(plain);
  bool same_bytes = true;
  for (Index t = 0; t < steps; ++t) {
    const auto before = bytes_of<D>(state);
    const Index written = state.pending, count = t % (R + 1);
    run_steps(m, state, drafts, 0, count);
    const bool flushed = state.pending < written + count * fw::StateOf<D>::writes_per_token;
    fw::roll_back(state, count);
    if (!flushed) same_bytes = same_bytes && bytes_of<D>(state) == before;
    run_steps(m, state, all, t, t + 1);
    run_steps(plain, truth, expected, t, t + 1);
  }
  INFO(D::name << " N " << N << " R " << R);
  CHECK(same_bytes);
  CHECK(laws::difference(all.outputs, expected.outputs) <= 1e-12);
  m.flush(state);
  CHECK(largest_entry(state.W - truth.W) <= 1e-12 * largest_entry(truth.W));
}

template <class M> void all_rings(const M& plain, bool positive = false) {
  drafts_leave_no_trace<1, 1>(plain, positive);
  drafts_leave_no_trace<4, 3>(plain, positive);
  drafts_leave_no_trace<3, 7>(plain, positive);
}
