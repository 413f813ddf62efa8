#pragma once

#include <algorithm>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/math/parallel_for.hpp>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// Extends a segment by a sequence of `steps` tokens.
template <Mergeable M>
void extend(const M& m, typename M::Segment& segment, const WriteSequence<M>& inputs,
            [[maybe_unused]] Index steps) {
  if constexpr (ExtendsBySequence<M>) {
    m.extend_by_sequence(segment, inputs);
  } else {
    const auto extents = m.signature().write();
    for (Index t = 0; t < steps; ++t)
      m.extend(segment, token_at<WriteToken<M>>(inputs, extents, t));
  }
}

// The first token of a segment of parallel_scan. To extend a Segment takes about 3/2 times as long
// as to scan. So the first segment is 3/2 times as long as the others.
constexpr Index segment_begin(Index segment, Index segments, Index total) {
  constexpr Index first_length = 3, length = 2;
  const auto end = [](Index i) { return i == 0 ? 0 : first_length + (i - 1) * length; };
  return total * end(segment) / end(segments);
}

}  // namespace detail

/// A prefix scan over one sequence, in parallel with OpenMP. The sequence is cut into `pieces` + 1
/// segments. First all of them but the last are processed in parallel: the first one is scanned, as
/// its initial state is known, and the writes of each other one are composed into a Segment. The
/// Segments then give the other segments their initial states. These are scanned in parallel. For
/// long sequences of one stream; with several heads or streams, one thread for each is faster.
///
/// Choose as many pieces as threads. If extending a Segment takes c times as long as a scan, here
/// c = 3/2 for the delta rules, P threads are (c + P) / (c + 1) times as fast as a scan in one.
/// Each piece needs memory for a Segment and a state. For the delta rule a Segment has d_k² more
/// entries than a state, and its application costs 2 d_v d_k² flops. One piece is a scan.
///
/// Agrees with scan up to rounding; the result depends on `pieces`, not on the number of threads.
/// More pieces than tokens mean as many as tokens. Throws std::invalid_argument, with the state
/// unchanged, when scan does or pieces < 1.
template <Mergeable M>
void parallel_scan(const M& m, StateOf<M>& state, WriteSequence<M> inputs, ReadSequence<M> queries,
                   OutSequence<M> outputs, Index pieces) {
  const auto write_extents = m.signature().write();
  const auto read_extents = m.signature().read();
  const auto output_extents = m.signature().out();
  const Index total = detail::steps_of(inputs, write_extents);
  detail::check_size<Dynamic>("parallel_scan", "pieces", pieces);
  detail::check_scan(m, state, inputs, queries, total);
  detail::check_outputs(m, state, inputs, queries, outputs, total);
  const Index segments = std::min(pieces, std::max<Index>(total, 1)) + (pieces > 1 ? 1 : 0);

  const auto begin = [&](Index i) { return detail::segment_begin(i, segments, total); };
  std::vector<StateOf<M>> states(1, state);
  const auto scan_segment = [&](Index i) {
    const Index first = begin(i), count = begin(i + 1) - first;
    detail::run_scan(m, states[static_cast<std::size_t>(i)],
                     detail::steps(inputs, write_extents, first, count),
                     detail::steps(queries, read_extents, first, count),
                     detail::steps(outputs, output_extents, first, count), count);
  };

  // of all segments but the first and the last
  std::vector<typename M::Segment> writes(
      static_cast<std::size_t>(std::max<Index>(segments - 2, 0)), m.empty_segment());
  parallel_for(std::max<Index>(segments - 1, 1), true, [&](Index i) {
    if (i == 0) return scan_segment(0);
    const Index first = begin(i), count = begin(i + 1) - first;
    detail::extend(m, writes[static_cast<std::size_t>(i - 1)],
                   detail::steps(inputs, write_extents, first, count), count);
  });

  for (Index i = 1; i < segments; ++i) {
    states.push_back(states.back());
    if (i > 1) m.apply(writes[static_cast<std::size_t>(i - 2)], states.back());
  }
  parallel_for(segments - 1, true, [&](Index i) { scan_segment(i + 1); });
  state = states.back();
}

}  // namespace fw
