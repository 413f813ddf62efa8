#pragma once

#include <fastweights/algorithms/heads.hpp>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/core/signatures.hpp>
#include <vector>

namespace fw {

/// A prefix scan over `pieces` segments of one sequence, in parallel with OpenMP. First the writes
/// of each piece are composed into a Segment, in parallel. Then the segments give each piece its
/// initial state. Then all pieces are scanned in parallel. For long sequences of one stream; with
/// several heads or streams, one thread for each is faster. Every write is done twice, and each
/// piece needs memory for a segment and a state. For the delta rule a segment has d_k² more entries
/// than a state and costs 4 d_k² more flops per token, and its application 2 d_v d_k² flops.
///
/// Outputs must not overlap inputs. Agrees with scan up to rounding; the result depends on
/// `pieces`, not on the number of threads. Throws std::invalid_argument, with the state unchanged,
/// when a size does not fit or pieces < 1.
template <Mergeable M>
void parallel_scan(const M& m, StateOf<M>& state, WriteSequence<M> inputs, ReadSequence<M> queries,
                   OutSequence<M> outputs, Index pieces) {
  const auto write_extents = m.signature().write();
  const auto read_extents = m.signature().read();
  const auto output_extents = m.signature().out();
  const Index total = detail::steps_of(inputs, write_extents);
  detail::check_size<Dynamic>("parallel_scan", "pieces", pieces);
  detail::check_scan(m, state, inputs, queries, total);
  detail::check_outputs(m, queries, outputs, total);
  const auto begin = [&](Index piece) { return total * piece / pieces; };

  std::vector<typename M::Segment> segments(static_cast<std::size_t>(pieces), m.empty_segment());
  for_each_head(pieces - 1, true, [&](Index p) {
    for (Index t = begin(p); t < begin(p + 1); ++t)
      m.extend(segments[static_cast<std::size_t>(p)],
               detail::token_at<WriteToken<M>>(inputs, write_extents, t));
  });

  std::vector<StateOf<M>> states(1, state);
  for (Index p = 0; p < pieces - 1; ++p) {
    states.push_back(states.back());
    m.apply(segments[static_cast<std::size_t>(p)], states.back());
  }

  for_each_head(pieces, true, [&](Index p) {
    const Index first = begin(p), count = begin(p + 1) - begin(p);
    scan(m, states[static_cast<std::size_t>(p)], detail::steps(inputs, write_extents, first, count),
         detail::steps(queries, read_extents, first, count),
         detail::steps(outputs, output_extents, first, count));
  });
  state = states.back();
}

}  // namespace fw
