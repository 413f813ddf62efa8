#pragma once

#include <fastweights/algorithms/scan.hpp>
#include <fastweights/testing/sequences.hpp>

#include "support/values.hpp"

/// \file
/// Sequences of a memory whose type is known, token by token, for tests of kernels and adaptors
/// that need the type.

namespace laws {

using fw::testing::Sequences;

/// Scans all tokens.
template <class M> void scan(const M& m, fw::StateOf<M>& s, Sequences<M>& all) {
  fw::scan(m, s, fw::view<fw::WriteSequence<M>>(all.inputs),
           fw::view<fw::ReadSequence<M>>(all.queries), fw::view<fw::OutSequence<M>>(all.outputs));
}

/// The write, read and output tokens of step t.
template <class M> auto tokens(const M& m, Sequences<M>& all, Eigen::Index t) {
  const auto signature = m.signature();
  return std::make_tuple(fw::detail::token_at<fw::WriteToken<M>>(
                             fw::view<fw::WriteSequence<M>>(all.inputs), signature.write(), t),
                         fw::detail::token_at<fw::ReadToken<M>>(
                             fw::view<fw::ReadSequence<M>>(all.queries), signature.read(), t),
                         fw::detail::token_at<fw::OutToken<M>>(
                             fw::view<fw::OutSequence<M>>(all.outputs), signature.out(), t));
}

template <class R> Values values_of(const R& record) {
  return values_of(fw::detail::object(record));
}
/// The difference of two records: see support/values.hpp.
template <class A, class B> double difference(const A& a, const B& b) {
  return difference(values_of(a), values_of(b));
}

}  // namespace laws
