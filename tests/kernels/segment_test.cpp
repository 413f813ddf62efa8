#include <fastweights/algorithms/parallel_scan.hpp>
#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>

#include "kernels/segments.hpp"

namespace {

using fw::Dynamic;
template <class S>
using VectorDecay = fw::GatedDeltaRule<S, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>;

void check_rules(Index dk, Index dv, Index steps) {
  check_segments(fw::DeltaRule<double>({dk, dv}), steps);
  check_segments(fw::GatedDeltaRule<double>({dk, dv}), steps);
  check_segments(VectorDecay<double>({dk, dv}), steps);
  check_segments(fw::Comba<double>({dk, dv}), steps);
  check_segments(fw::GatedDeltaRule2<double>({dk, dv}), steps);
  check_segments(fw::GatedDeltaProduct<double, 3>({dk, dv}), steps);
  check_segments(fw::LowRankRule<double>({dk, dv}), steps);
  check_segments(fw::LowRankRule<double, Dynamic, Dynamic, fw::KeyValueRemoval>({dk, dv}), steps);
}

TEST_CASE("segments: a sequence at once is token by token", "[kernels]") {
  for (const Index d : {1, 3, 17, 63, 65, 100}) check_rules(d, d, 31);
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 17}, {17, 1}, {3, 65}, {65, 3}})
    check_rules(dk, dv, 9);
  for (const Index steps : {1, 2, 63, 64, 65, 130}) check_rules(19, 6, steps);
}

template <class M> void check_decays_of_zero(const M& m) {
  Run<M> run(m, 40);
  if (run.all.inputs.decay.rows() > 1) {
    run.all.inputs.decay.row(0).tail(9).setZero();  // one key row only
    check_extension(m, run);
  }
  run.all.inputs.decay.col(7).setZero();
  auto segment = m.empty_segment();
  m.extend_by_sequence(segment, run.in());
  CHECK(segment.A.isZero(0));  // forgets the state before
  CHECK(difference(segment.B, token_by_token(m, run).B) <= 1e-12);
}

TEST_CASE("segments: decays of 0", "[kernels]") {
  check_decays_of_zero(fw::GatedDeltaRule<double>({5, 17}));
  check_decays_of_zero(VectorDecay<double>({5, 17}));
}

template <class M> void check_parallel_scan(const M& m, Index steps) {
  Run<M> whole(m, steps);
  fw::scan(m, whole.state, whole.in(), whole.queries(), whole.out());
  for (const Index pieces : {1, 2, 3, 8}) {
    INFO(M::name << " d " << whole.state.W.cols() << ", pieces: " << pieces);
    Run<M> parts(m, steps);
    fw::parallel_scan(m, parts.state, parts.in(), parts.queries(), parts.out(), pieces);
    CHECK(difference(parts.all.outputs.output, whole.all.outputs.output) <= 1e-12);
    CHECK(difference(parts.state.W, whole.state.W) <= 1e-12);
  }
}

TEST_CASE("parallel_scan is scan for long sequences", "[kernels]") {
  for (const Index d : {1, 3, 17, 63, 65, 100}) {
    check_parallel_scan(fw::DeltaRule<double>({.key_size = d}), 300);
    check_parallel_scan(fw::GatedDeltaRule<double>({.key_size = d}), 300);
    check_parallel_scan(VectorDecay<double>({.key_size = d}), 300);
  }
}

// The first state fades below the smallest float, and the values are near the largest.
template <class M> void check_large_values(const M& m) {
  Run<M> parts(m, 900), whole(m, 900);
  for (auto* run : {&parts, &whole}) {
    run->all.inputs.decay.setConstant(0.5f);
    run->all.inputs.value *= 1e34f;
  }
  fw::scan(m, whole.state, whole.in(), whole.queries(), whole.out());
  fw::parallel_scan(m, parts.state, parts.in(), parts.queries(), parts.out(), 3);
  CHECK(parts.all.outputs.output.allFinite());
  CHECK(difference(parts.all.outputs.output, whole.all.outputs.output) <= 1e-5);
}

TEST_CASE("parallel_scan of large values that fade stays finite", "[kernels]") {
  check_large_values(fw::GatedDeltaRule<float>({.key_size = 17}));
  check_large_values(VectorDecay<float>({.key_size = 17}));
}

TEST_CASE("parallel_scan: segments cover the sequence in order", "[kernels]") {
  for (Index total = 0; total < 20; ++total)
    for (Index segments = 1; segments <= std::max<Index>(total, 1); ++segments) {
      CHECK(fw::detail::segment_begin(0, segments, total) == 0);
      CHECK(fw::detail::segment_begin(segments, segments, total) == total);
      for (Index i = 0; i < segments; ++i)
        CHECK(fw::detail::segment_begin(i, segments, total) <=
              fw::detail::segment_begin(i + 1, segments, total));
    }
}

}  // namespace
