#pragma once

#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/math/decay.hpp>
#include <fastweights/memories/rules/affine_segment.hpp>
#include <fastweights/memories/rules/causal.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>
#include <fastweights/memories/rules/normaliser.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// The gated delta rule: the state decays, then the delta rule updates the value under the key.
///
///     W̄_t = W_{t−1} diag(α_t)     u_t = β_t (v_t − W̄_t k_t)
///     W_t = W̄_t + u_t k_tᵀ        y_t = W_t q_t
///
/// α in (0, 1] is one decay per token (`KeyValueBetaDecay`, the default) or one per key row
/// (`KeyValueBetaVectorDecay`: Kimi delta attention). α = 1 is the delta rule.
///
/// Shapes: W d_v×d_k, k and q d_k (feature-mapped already), v and y d_v, β 1, α 1 or d_k. Cost per
/// token: 7 d_v d_k flops. β ≥ 0. Stable for β‖k‖² ≤ 2: normalise the keys. With a zero
/// key the state decays and nothing is written. The rule has a chunkwise form for one decay per
/// token. Throws std::invalid_argument when a size does not fit. Yang, Kautz, Hatamizadeh 2024,
/// arXiv 2412.06464, section 3; Kimi Team 2025, arXiv 2510.26692, section 3.
template <class S, int Dk = Dynamic, int Dv = Dk,
          template <int, int> class Inputs = KeyValueBetaDecay>
class GatedDeltaRule : public MatrixRule<GatedDeltaRule<S, Dk, Dv, Inputs>, S, Inputs<Dk, Dv>>,
                       public detail::AffineWrites<GatedDeltaRule<S, Dk, Dv, Inputs>, S, Dk, Dv> {
  using Base = MatrixRule<GatedDeltaRule<S, Dk, Dv, Inputs>, S, Inputs<Dk, Dv>>;

 public:
  using Base::Base;
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "GatedDeltaRule";
  /// True if α is one number, not one per key row.
  static constexpr bool one_decay = detail::one_decay<Signature, S>;
  static constexpr auto decay_kind =
      one_decay ? detail::DecayKind::scalar : detail::DecayKind::per_channel;
  static constexpr bool has_delta_term = true, kernel_backward = true, plain_coefficients = true;

  template <class T> auto cast() const {
    return GatedDeltaRule<T, Dk, Dv, Inputs>(Base::signature().sizes());
  }

  void write(OwnedState& s, const WriteToken<GatedDeltaRule>& t) const {
    detail::apply_decay(s.W, t.decay);
    scratch<S, Dv>(dv(), [&](auto& update) FASTWEIGHTS_INLINE_LAMBDA {
      update.noalias() = s.W * t.key;
      update = t.beta * (t.value - update);
      s.W.noalias() += update * t.key.transpose();
    });
  }

  static constexpr bool key_bounds_strength = true;
  Violation violation(const WriteToken<GatedDeltaRule>& t) const {
    return delta_violation(t.beta, t.key);
  }

  /// Does not compute W̄: W̄ k = W (α ⊙ k).
  void write_vjp(const OwnedState& s, const WriteToken<GatedDeltaRule>& t, OwnedState& ds,
                 WriteGradToken<GatedDeltaRule> dt) const {
    scratch<S, Dk>(dk(), [&](auto& along_keys) {
      scratch<S, Dv, 2>(dv(), [&](auto& error, auto& dupdate) {
        along_keys = detail::decayed(t.decay, t.key);
        error.noalias() = s.W * along_keys;
        error = t.value - error;
        dupdate.noalias() = ds.W * t.key;
        dt.beta += error.cwiseProduct(dupdate).sum();
        auto &update = error, &derror = dupdate;  // reuse the storage
        update *= t.beta;
        dt.key.noalias() += ds.W.transpose() * update;
        derror *= t.beta;
        dt.value += derror;
        along_keys.noalias() = s.W.transpose() * derror;
        dt.key -= detail::decayed(t.decay, along_keys);
        ds.W.noalias() -= derror * t.key.transpose();  // the gradient of W̄
        detail::apply_decay_vjp(s.W, t.decay, ds.W, dt.decay);
      });
    });
  }

  /// The kernels' coefficients of a token.
  template <class StateLike>
  detail::TokenCoefficients<S> coefficients(StateLike&, const WriteToken<GatedDeltaRule>& t,
                                            const ReadToken<GatedDeltaRule>&) const {
    detail::TokenCoefficients<S> c;
    if constexpr (!detail::is_per_entry<decltype(t.beta)>) c.beta = t.beta;
    if constexpr (one_decay) c.decay = t.decay;
    return c;
  }

  /// The WY form of DeltaRule, with γ_t = α_1 ⋯ α_t in the chunk:
  /// u_t = β_t (v_t − γ_t W k_t − Σ_{i<t} (α_{i+1} ⋯ α_t) u_i (k_i·k_t)). Then Y and W follow from
  /// U as from the values of gated linear attention. In float a chunk with a β‖k‖² above 1 is
  /// summed in double (causal.hpp).
  void chunk(OwnedState& s, const WriteSequence<GatedDeltaRule>& inputs,
             const ReadSequence<GatedDeltaRule>& queries,
             OutSequence<GatedDeltaRule> out) const requires one_decay {
    const auto decays = detail::causal_decays<S>(inputs.decay);
    const Index steps = decays.cols();
    const Eigen::Matrix<S, 1, Dynamic> decay_of_state = inputs.decay[0] * decays.row(0);  // γ
    auto weights = detail::causal_products<S>(inputs.key, queries.query);
    weights.array() *= decays.array();
    Eigen::Matrix<S, Dv, Dynamic, Dv == 1 ? Eigen::RowMajor : Eigen::ColMajor> updates(dv(), steps);
    detail::set_decayed_product<S>(updates, s.W, inputs.key, decay_of_state);
    detail::solve_chunk(
        inputs.key, inputs.beta, updates,
        [&](auto& products) {
          using A = typename std::remove_cvref_t<decltype(products)>::Scalar;
          products.array() *= decays.array().template cast<A>();
        },
        [&](auto& u, const auto& key_products) {
          using A = typename std::remove_cvref_t<decltype(u)>::Scalar;
          for (Index t = 0; t < steps; ++t) {
            auto update = u.col(t);
            update.noalias() += u.leftCols(t) * key_products.col(t).head(t);
            update = A(inputs.beta[t]) * (inputs.value.col(t).template cast<A>() - update);
          }
        });
    detail::set_decayed_product<S>(out.output, s.W, queries.query, decay_of_state);
    detail::add_product(out.output, updates, weights);
    s.W *= decay_of_state[steps - 1];
    updates *= decays.col(steps - 1).asDiagonal();
    detail::add_product(s.W, updates, inputs.key.transpose());
  }

  /// W_t = W_{t−1} diag(α) (I − β k kᵀ) + β v kᵀ is affine in W: a segment is W ← W A + B.
  void extend(detail::AffineSegment<S, Dk, Dv>& g, const WriteToken<GatedDeltaRule>& t) const {
    g.add(detail::decayed(t.decay, t.key), t.value, t.beta, t.decay, t.key);
  }

 private:
  using Base::dk, Base::dv;
};

}  // namespace fw
