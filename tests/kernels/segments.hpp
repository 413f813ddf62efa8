#pragma once

#include <fastweights/algorithms/parallel_scan.hpp>

#include "kernels/compare.hpp"

/// \file
/// A segment that takes a sequence by the scan's kernel against one that takes it token by token.

template <class M> typename M::Segment token_by_token(const M& m, Run<M>& run) {
  auto segment = m.empty_segment();
  run.each(m, [&](const auto& write, const auto&, const auto&) { m.extend(segment, write); });
  return segment;
}

template <class M> void check_extension(const M& m, Run<M>& run) {
  static_assert(fw::ExtendsBySequence<M>);
  const auto expected = token_by_token(m, run);
  const auto extents = m.signature().write();
  const Index steps = run.queries().query.cols();
  INFO(M::name << " d_v " << expected.B.rows() << " d_k " << expected.A.rows() << " T " << steps);
  for (const Index first : {Index{0}, Index{1}, steps / 2, steps}) {
    auto segment = m.empty_segment();
    m.extend_by_sequence(segment, fw::detail::steps(run.in(), extents, 0, first));
    m.extend_by_sequence(segment, fw::detail::steps(run.in(), extents, first, steps - first));
    CHECK(difference(segment.A, expected.A) <= 1e-12);
    CHECK(difference(segment.B, expected.B) <= 1e-12);
  }
}

template <class M> void check_segments(const M& m, Index steps) {
  Run<M> run(m, steps);
  check_extension(m, run);
}
