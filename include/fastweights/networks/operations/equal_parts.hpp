#pragma once

#include <fastweights/networks/operation.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Calls f(part of first, part of others, …) for each of `groups` equal parts of every column. The
/// parts are arrays that f may assign to.
template <class F, class First, class... Others>
void for_each_part(Index groups, const F& f, First first, Others... others) {
  const Index d = first.rows() / groups;
  for (Index t = 0; t < first.cols(); ++t)
    for (Index g = 0; g < groups; ++g)
      f(first.col(t).segment(g * d, d).array(), others.col(t).segment(g * d, d).array()...);
}

}  // namespace fw::networks
