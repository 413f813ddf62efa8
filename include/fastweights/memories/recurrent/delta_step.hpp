#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/core/state.hpp>

/// \file
/// One token of the delta rule on a matrix, written and then read, and its gradients. The recurrent
/// memories use it for each of their matrices.
///
///     u = β (v − W k)     W ← W + u kᵀ     y ← y + W q
///
/// Notation as in memories/rules/delta_rule.hpp. Cost: 6 d_v d_k flops forward, 14 d_v d_k
/// backward.

namespace fw::inline FASTWEIGHTS_ABI::detail {

// The inputs of one matrix, or their gradients, which accumulate. Holds references to lvalues and
// copies of rvalues, such as a column expression.
template <class K, class V, class B, class Q> struct DeltaToken {
  K key;
  V value;
  B beta;
  Q query;
};
template <class K, class V, class B, class Q>
DeltaToken(K&&, V&&, B&&, Q&&) -> DeltaToken<K, V, B, Q>;

template <class W, class T, class Y> void delta_step(W& w, const T& t, Y& y) {
  using S = typename W::Scalar;
  scratch<S, W::RowsAtCompileTime>(w.rows(), [&](auto& update) {
    update.noalias() = w * t.key;
    update = t.beta * (t.value - update);
    w.noalias() += update * t.key.transpose();
  });
  y.noalias() += w * t.query;
}

// Adds to y what delta_step would add, without changing w.
template <class W, class T, class Y> void delta_output(const W& w, const T& t, Y& y) {
  using S = typename W::Scalar;
  const S key_query = t.key.cwiseProduct(t.query).sum();
  scratch<S, W::RowsAtCompileTime>(w.rows(), [&](auto& retrieved) {
    retrieved.noalias() = w * t.key;
    y += S(t.beta * key_query) * (t.value - retrieved);
  });
  y.noalias() += w * t.query;
}

// `w` is the matrix before the step. dw is the gradient of the matrix after the step on entry, and
// that of `w` on return.
template <class W, class T, class Dy, class DW, class DT>
void delta_step_vjp(const W& w, const T& t, const Dy& dy, DW& dw, DT dt) {
  using S = typename W::Scalar;
  scratch<S, W::RowsAtCompileTime, 2>(w.rows(), [&](auto& error, auto& dupdate) {
    auto &update = error, &dretrieved = dupdate;  // reuse the storage
    error.noalias() = w * t.key;
    error = t.value - error;
    dw.noalias() += dy * t.query.transpose();
    dt.query.noalias() += w.transpose() * dy;
    dt.query += t.key * S(t.beta * error.cwiseProduct(dy).sum());
    dupdate.noalias() = dw * t.key;
    dt.beta += error.cwiseProduct(dupdate).sum();
    update *= t.beta;
    dt.key.noalias() += dw.transpose() * update;
    dretrieved *= -t.beta;
    dt.value -= dretrieved;
    dw.noalias() += dretrieved * t.key.transpose();
    dt.key.noalias() += w.transpose() * dretrieved;
  });
}

}  // namespace fw::detail
