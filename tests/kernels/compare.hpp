#pragma once

#include <fastweights/algorithms/scan.hpp>
#include <fastweights/testing/sequences.hpp>
#include <limits>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

/// \file
/// A rule's step, scan and fw::write against its own write and read, which are plain Eigen
/// expressions.

using fw::Index;

template <class M> struct Run {
  fw::testing::Sequences<M> all;
  fw::StateOf<M> state;

  Run(const M& m, Index steps) : state(fw::initial_state(m)) {
    fw::Random random(7);
    all = fw::testing::random_sequences(m, steps, random, /*positive=*/true);
    if constexpr (requires { state.W; })
      random.fill(state.W);
    else
      random.fill(state.A);
    all.outputs.output.setConstant(typename M::Scalar(NAN));
  }
  auto in() const { return fw::view<fw::WriteSequence<M>>(all.inputs); }
  auto queries() const { return fw::view<fw::ReadSequence<M>>(all.queries); }
  auto out() { return fw::view<fw::OutSequence<M>>(all.outputs); }
  template <class F> void each(const M& m, const F& f) {
    for (Index t = 0; t < queries().query.cols(); ++t)
      f(fw::detail::token_at<fw::WriteToken<M>>(in(), m.signature().write(), t),
        fw::detail::token_at<fw::ReadToken<M>>(queries(), m.signature().read(), t),
        fw::detail::token_at<fw::OutToken<M>>(out(), m.signature().out(), t));
  }
};

template <class A, class B> double difference(const A& a, const B& b) {
  const double worst = largest_entry(a - b) / b.cwiseAbs().maxCoeff();
  return std::isnan(worst) ? 1e300 : worst;
}

template <class M> void check(const M& m, Index steps) {
  Run<M> plain(m, steps), stepped(m, steps), scanned(m, steps), written(m, steps);
  plain.each(m, [&](const auto& w, const auto& r, const auto& y) {
    if constexpr (fw::reads_first<M>()) m.read(plain.state, r, y);
    m.write(plain.state, w);
    if constexpr (!fw::reads_first<M>()) m.read(plain.state, r, y);
  });
  stepped.each(
      m, [&](const auto& w, const auto& r, const auto& y) { fw::step(m, stepped.state, w, r, y); });
  fw::scan(m, scanned.state, scanned.in(), scanned.queries(), scanned.out());
  written.each(m, [&](const auto& w, const auto&, const auto&) { fw::write(m, written.state, w); });
  // 450 units of rounding, about 1e-13 in double
  const double limit = 450 * double{std::numeric_limits<typename M::Scalar>::epsilon()} *
                       static_cast<double>(1 + steps / 16);
  const auto sizes = m.signature().sizes();
  INFO(M::name << " d_v " << sizes.value_size << " d_k " << sizes.key_size << " T " << steps);
  for (auto* run : {&stepped, &scanned, &written}) {
    if (run != &written)  // which has no outputs
      CHECK(difference(run->all.outputs.output, plain.all.outputs.output) <= limit);
    const auto check_matrix = [&](const auto& matrix, const auto& expected) {
      CHECK(difference(matrix, expected) <= limit);
    };
    auto &state = run->state, &expected = plain.state;
    if constexpr (requires { state.W; }) check_matrix(state.W, expected.W);
    if constexpr (requires { state.A; }) check_matrix(state.A, expected.A);
    if constexpr (requires { state.momentum; }) check_matrix(state.momentum, expected.momentum);
  }
}
