#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/math/decay.hpp>
#include <fastweights/memories/rules/normaliser.hpp>

/// \file
/// A correction of W with a look-up key a, which reads W before its decay, and a write key b:
///
///     u = β ∘ (v − W a)     W ← W diag(α) + u bᵀ
///
/// α is one decay or one per column, β one number or one per row. To read W after its decay, the
/// look-up key is α ⊙ a, since (W diag(α)) a = W (α ⊙ a). So one form serves all delta rules.

namespace fw::inline FASTWEIGHTS_ABI::detail {

template <int Rows, class W, class A, class V, class Beta, class Decay, class B>
void correct(W& w, const A& lookup, const V& value, const Beta& beta, const Decay& decay,
             const B& key) {
  using S = typename W::Scalar;
  scratch<S, Rows>(w.rows(), [&](auto& update) FASTWEIGHTS_INLINE_LAMBDA {
    update.noalias() = w * lookup;
    update = decayed(beta, value - update);
    apply_decay(w, decay);
    w.noalias() += update * key.transpose();
  });
}

/// The gradients of a correction. `dw` is that of W after the correction on entry and before it on
/// return. Adds to all others.
template <int Rows, class W, class A, class V, class Beta, class Decay, class B, class DA, class DV,
          class DBeta, class DDecay, class DB>
void correct_vjp(const W& w, const A& lookup, const V& value, const Beta& beta, const Decay& decay,
                 const B& key, W& dw, DA& dlookup, DV& dvalue, DBeta& dbeta, DDecay& ddecay,
                 DB& dkey) {
  using S = typename W::Scalar;
  scratch<S, Rows, 2>(w.rows(), [&](auto& error, auto& derror) {
    error.noalias() = w * lookup;
    error = value - error;
    derror.noalias() = dw * key;  // the gradient of u
    add_scale_vjp(error, derror, dbeta);
    error = decayed(beta, error);
    dkey.noalias() += dw.transpose() * error;
    derror = decayed(beta, derror);
    dvalue += derror;
    dlookup.noalias() -= w.transpose() * derror;
    apply_decay_vjp(w, decay, dw, ddecay);
    dw.noalias() -= derror * lookup.transpose();
  });
}

}  // namespace fw::detail
