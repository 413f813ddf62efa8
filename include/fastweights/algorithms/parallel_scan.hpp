#pragma once

#include <algorithm>
#include <fastweights/algorithms/heads.hpp>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/core/signatures.hpp>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI {

/// A prefix scan over one sequence in `segments` segments, in parallel with OpenMP. First the
/// writes of each segment are composed into a Segment, in parallel. Then these give each segment
/// its initial state. Then all segments are scanned in parallel. For long sequences of one stream;
/// with several heads or streams, one thread for each is faster. Every write is done twice, and
/// each segment needs memory for a Segment and a state. For the delta rule a Segment has d_k² more
/// entries than a state and costs 4 d_k² more flops per token, and its application 2 d_v d_k²
/// flops.
///
/// Outputs must not overlap inputs. Agrees with scan up to rounding; the result depends on
/// `segments`, not on the number of threads. More segments than tokens mean as many as tokens.
/// Throws std::invalid_argument, with the state unchanged, when a size does not fit or segments
/// < 1.
template <Mergeable M>
void parallel_scan(const M& m, StateOf<M>& state, WriteSequence<M> inputs, ReadSequence<M> queries,
                   OutSequence<M> outputs, Index segments) {
  const auto write_extents = m.signature().write();
  const auto read_extents = m.signature().read();
  const auto output_extents = m.signature().out();
  const Index total = detail::steps_of(inputs, write_extents);
  detail::check_size<Dynamic>("parallel_scan", "segments", segments);
  detail::check_scan(m, state, inputs, queries, total);
  detail::check_outputs(m, queries, outputs, total);
  segments = std::clamp<Index>(total, 1, segments);
  const auto begin = [&](Index segment) { return total * segment / segments; };

  std::vector<typename M::Segment> writes(static_cast<std::size_t>(segments), m.empty_segment());
  for_each_head(segments - 1, true, [&](Index i) {
    for (Index t = begin(i); t < begin(i + 1); ++t)
      m.extend(writes[static_cast<std::size_t>(i)],
               detail::token_at<WriteToken<M>>(inputs, write_extents, t));
  });

  std::vector<StateOf<M>> states(1, state);
  for (Index i = 0; i < segments - 1; ++i) {
    states.push_back(states.back());
    m.apply(writes[static_cast<std::size_t>(i)], states.back());
  }

  for_each_head(segments, true, [&](Index i) {
    const Index first = begin(i), count = begin(i + 1) - begin(i);
    detail::run_scan(m, states[static_cast<std::size_t>(i)],
                     detail::steps(inputs, write_extents, first, count),
                     detail::steps(queries, read_extents, first, count),
                     detail::steps(outputs, output_extents, first, count), count);
  });
  state = states.back();
}

}  // namespace fw
