#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/core/state.hpp>

/// \file
/// One token of the delta rule on a matrix, written and then read, and its gradients: what the
/// recurrent memories are made of, which program one or more matrices at every token.
///
///     u = β (v − W k)     W ← W + u kᵀ     y ← y + W q
///
/// In the names of memories/rules/delta_rule.hpp. Cost: 6 d_v d_k flops forwards, 14 d_v d_k backwards.

namespace fw::detail {

// What a token brings for one matrix, or the room for its gradients, all of which accumulate:
// refers to what has a name, and holds what has none, such as a column.
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

// What delta_step adds to y, by the matrix before the step, which stays as it is.
template <class W, class T, class Y> void delta_answer(const W& w, const T& t, Y& y) {
  using S = typename W::Scalar;
  const S met = t.key.cwiseProduct(t.query).sum();
  scratch<S, W::RowsAtCompileTime>(w.rows(), [&](auto& retrieved) {
    retrieved.noalias() = w * t.key;
    y += S(t.beta * met) * (t.value - retrieved);
  });
  y.noalias() += w * t.query;
}

// `w` is the matrix before the step; dw enters as the gradient of the matrix after it and leaves as
// that of `w`.
template <class W, class T, class Dy, class DW, class DT>
void delta_step_vjp(const W& w, const T& t, const Dy& dy, DW& dw, DT dt) {
  using S = typename W::Scalar;
  scratch<S, W::RowsAtCompileTime, 2>(w.rows(), [&](auto& error, auto& derror) {
    error.noalias() = w * t.key;
    error = t.value - error;
    dw.noalias() += dy * t.query.transpose();
    dt.query.noalias() += w.transpose() * dy;
    dt.query += t.key * S(t.beta * error.cwiseProduct(dy).sum());
    derror.noalias() = dw * t.key;  // of the update
    dt.beta += error.cwiseProduct(derror).sum();
    error *= t.beta;  // the update
    dt.key.noalias() += dw.transpose() * error;
    derror *= -t.beta;  // of W k
    dt.value -= derror;
    dw.noalias() += derror * t.key.transpose();
    dt.key.noalias() += w.transpose() * derror;
  });
}

}  // namespace fw::detail
