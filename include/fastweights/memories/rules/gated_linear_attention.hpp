#pragma once

#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/math/decay.hpp>
#include <fastweights/memories/rules/causal.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>
#include <fastweights/memories/rules/normaliser.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Gated linear attention: the sum rule with an input decay for every token.
///
///     W_t = W_{t−1} diag(α_t) + v_t k_tᵀ      y_t = W_t q_t
///
/// α in (0, 1] is one decay per key row (`KeyValueVectorDecay`, the default) or one per token
/// (`KeyValueDecay`: simple gated linear attention, the recurrence of Mamba-2). α = 1 is linear
/// attention. A constant α is retention, see HebbianMemory.
///
/// Shapes: W d_v×d_k, k and q d_k (feature-mapped already), v and y d_v, α d_k or 1. Cost per
/// token: 5 d_v d_k flops. With a zero key the state decays and nothing is written. The rule has a
/// chunkwise form for one decay per token.
/// Throws std::invalid_argument when a size does not fit.
/// Yang, Wang, Shen, Panda, Kim 2023, arXiv 2312.06635, section 4; Dao & Gu 2024, arXiv 2405.21060;
/// retention: Sun et al. 2023, arXiv 2307.08621, eq. 6.
template <class S, int Dk = Dynamic, int Dv = Dk,
          template <int, int> class Inputs = KeyValueVectorDecay>
class GatedLinearAttention
    : public MatrixRule<GatedLinearAttention<S, Dk, Dv, Inputs>, S, Inputs<Dk, Dv>> {
  using Base = MatrixRule<GatedLinearAttention<S, Dk, Dv, Inputs>, S, Inputs<Dk, Dv>>;

 public:
  using Base::Base;
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "GatedLinearAttention";
  /// True if α is one number, not one per key row.
  static constexpr bool one_decay = detail::one_decay<Signature, S>;
  static constexpr auto decay_kind =
      one_decay ? detail::DecayKind::scalar : detail::DecayKind::per_channel;
  static constexpr bool has_delta_term = false, kernel_backward = true, plain_coefficients = true;

  template <class T> auto cast() const {
    return GatedLinearAttention<T, Dk, Dv, Inputs>(Base::signature().sizes());
  }

  void write(OwnedState& s, const WriteToken<GatedLinearAttention>& t) const {
    detail::apply_decay(s.W, t.decay);
    s.W.noalias() += t.value * t.key.transpose();
  }

  void write_vjp(const OwnedState& s, const WriteToken<GatedLinearAttention>& t, OwnedState& ds,
                 WriteGradToken<GatedLinearAttention> dt) const {
    dt.value.noalias() += ds.W * t.key;
    dt.key.noalias() += ds.W.transpose() * t.value;
    detail::apply_decay_vjp(s.W, t.decay, ds.W, dt.decay);
  }

  /// The kernels' coefficients of a token.
  template <class StateLike>
  detail::TokenCoefficients<S> coefficients(StateLike&, const WriteToken<GatedLinearAttention>& t,
                                            const ReadToken<GatedLinearAttention>&) const {
    detail::TokenCoefficients<S> c;
    if constexpr (one_decay) c.decay = t.decay;
    return c;
  }

  /// With γ_t = α_1 ⋯ α_t in the chunk: y_t = γ_t W q_t + Σ_{i≤t} (α_{i+1} ⋯ α_t) v_i (k_i·q_t).
  void chunk(OwnedState& s, const WriteSequence<GatedLinearAttention>& inputs,
             const ReadSequence<GatedLinearAttention>& queries,
             OutSequence<GatedLinearAttention> out) const requires one_decay {
    const auto decays = detail::causal_decays<S>(inputs.decay);
    const Index last = decays.cols() - 1;
    auto weights = detail::causal_products<S>(inputs.key, queries.query);
    weights.array() *= decays.array();
    detail::set_decayed_product<S>(out.output, s.W, queries.query, inputs.decay[0] * decays.row(0));
    detail::add_product(out.output, inputs.value, weights);
    s.W *= inputs.decay[0] * decays(0, last);
    const Eigen::Matrix<S, Dynamic, Dynamic> decayed_values =
        inputs.value * decays.col(last).asDiagonal();
    detail::add_product(s.W, decayed_values, inputs.key.transpose());
  }

  /// A segment of writes: W ← W diag(decay) + sum.
  struct Segment {
    detail::PlainArray<S, 1, Dk> decay;
    detail::PlainArray<S, Dv, Dk> sum;  ///< of its writes, each decayed by the later ones
    static constexpr auto names = fw::names("decay", "sum");
  };
  Segment empty_segment() const {
    return {detail::PlainArray<S, 1, Dk>::Ones(1, dk()),
            detail::PlainArray<S, Dv, Dk>::Zero(dv(), dk())};
  }
  void extend(Segment& g, const WriteToken<GatedLinearAttention>& t) const {
    detail::apply_decay(g.decay, t.decay);
    detail::apply_decay(g.sum, t.decay);
    g.sum.noalias() += t.value * t.key.transpose();
  }
  void merge(Segment& g, const Segment& later) const {
    if (&g == &later) return merge(g, Segment(later));
    detail::apply_decay(g.decay, later.decay);
    detail::apply_decay(g.sum, later.decay);
    g.sum += later.sum;
  }
  void apply(const Segment& g, OwnedState& s) const {
    detail::apply_decay(s.W, g.decay);
    s.W += g.sum;
  }

 private:
  using Base::dk, Base::dv;
};

}  // namespace fw
