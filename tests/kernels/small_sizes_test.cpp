#include <fastweights/algorithms/backward.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "kernels/compare.hpp"

// Few rows, and rows that are no whole packets, in float, whose packets have the most lanes.
// scan_test.cpp has the same in double, and sizes/ has sizes fixed at compile time.
namespace {

using fw::Dynamic;

TEST_CASE("kernels: float, square memories of every size", "[kernels]") {
  for (Index d = 1; d <= 70; ++d) {
    check(fw::LinearAttention<float>({.key_size = d}), 5);
    check(fw::DeltaRule<float>({.key_size = d}), 5);
    check(fw::HebbianMemory<float>({.key_size = d}), 5);
    check(fw::GatedDeltaRule<float>({.key_size = d}), 5);
    check(fw::GatedLinearAttention<float>({.key_size = d}), 5);
  }
}

TEST_CASE("kernels: float, d_v differs from d_k", "[kernels]") {
  for (Index dv = 1; dv <= 33; ++dv)
    for (const Index dk : {1, 2, 5, 19}) {
      check(fw::DeltaRule<float>({dk, dv}), 4);
      check(fw::GatedLinearAttention<float>({dk, dv}), 4);
    }
}

// A neighbour of W or of an output must not change: rows that overlap or are padded stay inside.
TEST_CASE("kernels: nothing outside W and the output is written", "[kernels]") {
  for (Index d = 1; d <= 40; ++d) {
    using M = fw::DeltaRule<float>;
    const M m({.key_size = d});
    Run<M> run(m, 3);
    Eigen::MatrixXf output = Eigen::MatrixXf::Constant(d + 40, 3, -1);
    for (const bool scan : {false, true}) {
      if (scan)
        fw::scan(m, run.state, run.in(), run.queries(), {output.middleRows(20, d)});
      else
        for (Index t = 0; t < 3; ++t)
          fw::step(m, run.state,
                   {run.all.inputs.key.col(t), run.all.inputs.value.col(t), run.all.inputs.beta[t]},
                   {run.all.queries.query.col(t)}, {output.col(t).segment(20, d)});
      INFO("d " << d << " scan " << scan);
      CHECK((output.topRows(20).array() == -1).all());
      CHECK((output.bottomRows(20).array() == -1).all());
    }
  }
}

// The errors that a scan stores for the backward pass.
TEST_CASE("kernels: errors of few rows", "[kernels]") {
  for (Index d = 1; d <= 20; ++d) {
    using M = fw::DeltaRule<float>;
    const M m({.key_size = d});
    Run<M> run(m, 6), plain(m, 6);
    fw::Checkpoints<M> checkpoints;
    fw::scan(m, run.state, run.in(), run.queries(), run.out(), checkpoints);
    Eigen::MatrixXf errors(d, 6);
    Index t = 0;
    plain.each(m, [&](const auto& w, const auto&, const auto&) {
      errors.col(t++) = w.value - plain.state.W * w.key;
      m.write(plain.state, w);
    });
    INFO("d " << d);
    CHECK(difference(checkpoints.trace.errors, errors) <= 1e-5);
  }
}

}  // namespace
