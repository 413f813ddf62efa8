#pragma once

#include <fastweights/core/check.hpp>

/// \file
/// Records that own whole sequences, for buffers, tests and benchmarks.

namespace fw::inline FASTWEIGHTS_ABI {

/// Inputs of the writes of memory M for a sequence, in matrices of its own.
template <class M>
using OwnedWrites = typename M::Signature::template Write<OwnedSequence<typename M::Scalar>>;
/// Inputs of the reads of memory M for a sequence, in matrices of its own.
template <class M>
using OwnedReads = typename M::Signature::template Read<OwnedSequence<typename M::Scalar>>;
/// Outputs of a sequence, in matrices of their own.
template <class M>
using OwnedOuts = typename M::Signature::template Out<OwnedSequence<typename M::Scalar>>;

/// A record of matrices for `steps` steps of the given extents, every entry `fill`.
template <Record R, Record E, class S>
R owned_sequence(const E& extents, Index steps, const S& fill) {
  return make_record<R>(extents, [&]<class Array>(const MemberExtent& e) {
    return Array(Array::Constant(e.rows, e.width * steps, fill));
  });
}

/// Views of a record of matrices: view<WriteSequence<M>>(inputs).
template <Record View, Record R> View view(R&& record) {
  return make_record<View>(record, []<class Member>(auto& array) { return Member(array); });
}

}  // namespace fw
