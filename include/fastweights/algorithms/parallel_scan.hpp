#pragma once

#include <fastweights/algorithms/heads.hpp>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/core/signatures.hpp>
#include <vector>

namespace fw {

/// As scan, with the sequence cut into `pieces` that are worked on at the same time (OpenMP, where
/// the program is compiled with it): every piece is first summed up in a Segment, the segments give
/// every piece its initial state, then all pieces are scanned. For long sequences of one stream;
/// where there are several heads or streams, one thread for each costs less, since this does every
/// write twice and keeps a segment and a state a piece (for the delta rule a segment has d_k² more
/// entries, 4 d_k² more flops a token, and its use 2 d_v d_k² flops a piece).
///
/// Outputs must not overlap inputs. Agrees with scan up to rounding; the result depends on
/// `pieces`, not on the number of threads. Throws std::invalid_argument when a size does not fit or
/// pieces < 1; the state is as it was then.
template <Mergeable M>
void parallel_scan(const M& m, StateOf<M>& state, WriteSequence<M> inputs, ReadSequence<M> queries,
                   OutSequence<M> outputs, Index pieces) {
  const auto in = m.signature().write();
  const auto asked = m.signature().read();
  const auto out = m.signature().out();
  const Index total = detail::steps_of(inputs, in);
  detail::check_size<Dynamic>("parallel_scan", "pieces", pieces);
  detail::check_scan(m, state, inputs, queries, total);
  detail::check_outputs(m, queries, outputs, total);
  const auto begin = [&](Index piece) { return total * piece / pieces; };

  std::vector<typename M::Segment> segments(static_cast<std::size_t>(pieces), m.empty_segment());
  for_each_head(pieces - 1, true, [&](Index p) {
    for (Index t = begin(p); t < begin(p + 1); ++t)
      m.extend(segments[static_cast<std::size_t>(p)],
               detail::token_at<WriteToken<M>>(inputs, in, t));
  });

  std::vector<StateOf<M>> states(1, state);
  for (Index p = 0; p < pieces - 1; ++p) {
    states.push_back(states.back());
    m.apply(segments[static_cast<std::size_t>(p)], states.back());
  }

  for_each_head(pieces, true, [&](Index p) {
    const Index first = begin(p), count = begin(p + 1) - begin(p);
    detail::run_scan(m, states[static_cast<std::size_t>(p)],
                     detail::steps(inputs, in, first, count),
                     detail::steps(queries, asked, first, count),
                     detail::steps(outputs, out, first, count), count);
  });
  state = states.back();
}

}  // namespace fw
