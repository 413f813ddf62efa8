#pragma once

#include <stdexcept>
#include <string>

#include "compare.hpp"
#include "head.hpp"
#include "machine.hpp"

/// \file
/// What a memory is compared with: a kind's naive expression in Eigen, of sizes fixed at compile
/// time or not, whichever the memory's are; the same memory in fixed sizes; one without the gate.

namespace measure {

/// A kind that has a naive expression.
template <class Kind, class M>
concept Naive = requires(Head<M>& head) {
  Kind::naive(head.all, head.state.W);
};

/// Sequences as `Sized` sees them, whatever type holds them.
template <class Sized> struct Views {
  fw::WriteSequence<Sized> inputs;
  fw::ReadSequence<Sized> queries;
  fw::OutSequence<Sized> outputs;
};

/// Takes the head through the naive expression, in sizes of D. By maps, as Eigen holds no matrix of
/// a fixed size above 128 kB.
template <class Kind, int D, class M> void run_naive(Head<M>& head) {
  using S = typename M::Scalar;
  using Sized = decltype(Kind::template make<S, D>(Index(D)));
  Views<Sized> all{fw::view<fw::WriteSequence<Sized>>(head.all.inputs),
                   fw::view<fw::ReadSequence<Sized>>(head.all.queries),
                   fw::view<fw::OutSequence<Sized>>(head.all.outputs)};
  auto& W = head.state.W;
  Eigen::Map<Eigen::Matrix<S, D, D>, Eigen::AlignedMax> w(W.data(), W.rows(), W.cols());
  Kind::naive(all, w);
}

/// Throws unless the naive expression answers what the memory does.
template <class Kind, int D, class M> void assert_same(const M& m, Head<M> head) {
  head.scan(m);
  const auto expected = head.all.outputs.output;
  fw::set_zero(head.state);
  run_naive<Kind, D>(head);
  if (!((head.all.outputs.output - expected).norm() < 1e-3 * expected.norm()))
    throw std::logic_error(std::string(Kind::name) + ": the naive expression differs");
}

/// Whether Eigen holds the state of such a memory.
template <class S, int D>
constexpr bool can_be_fixed = D != Dynamic&& D* D * sizeof(S) <= EIGEN_STACK_ALLOCATION_LIMIT;

/// The rows of keys that are known at compile time.
template <class M> constexpr int size_of = decltype(fw::OwnedReads<M>::query)::RowsAtCompileTime;

/// How many times as long as the first takes the second, by processor time.
template <class F, class G> double ratio(F&& one, G&& other) {
  return machine::times_as_long(machine::processor_clock, one, other);
}

/// A scan of one head, to be run again and again.
template <class M> auto scanning(const M& m, Index steps) {
  return [m, head = Head<M>(m, steps)]() mutable { head.scan(m); };
}

/// Steps of some heads.
template <class M> auto stepping(const M& m, Index count) {
  return [m, all = streaming_heads(m, count)]() mutable {
    for (auto& head : all) head.step(m);
  };
}

}  // namespace measure
