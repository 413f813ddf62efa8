#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/memories/rules/momentum_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, p, η, μ, β, α): a key to write to and a key p to look up. Read q.
template <int Dk, int Dv> struct KeyValueLookupMomentum : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Dk> lookup;  ///< p, d_k rows
    num<C> rate;        ///< η, of the error in the momentum
    num<C> momentum;    ///< μ, the momentum's decay
    num<C> beta;        ///< of the momentum in W
    num<C> decay;
    static constexpr auto names =
        fw::names("key", "value", "lookup", "rate", "momentum", "beta", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::key, Role::strength,
                                            Role::decay, Role::strength, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueLookupMomentum<NewDk, Dv>;

  Write<Extents> write() const {
    const MemberExtent key{this->dk, 1}, one{1, 1};
    return {key, {this->dv, 1}, key, one, one, one, one};
  }
};

//| `MomentumDeltaRule` | M = μ M + η (W p − v) kᵀ, W = α W − β M | y = W q | 9 d_v d_k |  |
//|   Huang et al. 2026, 2605.05838
/// Momentum DeltaNet: the errors of a look-up go into a momentum M, and W follows it.
///
///     M_t = μ_t M_{t−1} + η_t (W_{t−1} p_t − v_t) k_tᵀ
///     W_t = α_t W_{t−1} − β_t M_t     y_t = W_t q_t
///
/// The paper takes p = k. With μ = 0 it is Comba with the strength β η.
///
/// Shapes: W and M d_v×d_k, k, p and q d_k, v and y d_v, η, μ, β and α 1. Cost per token: 9 d_v d_k
/// flops. μ and α are in [0, 1]. With p = k and constant numbers it is stable for β η‖k‖² ≤ (1 + α)
/// (1 + μ): normalise the keys. Throws std::invalid_argument when a size does not fit. Huang et
/// al. 2026, arXiv 2605.05838.
template <class S, int Dk = Dynamic, int Dv = Dk>
class MomentumDeltaRule
    : public MomentumRule<MomentumDeltaRule<S, Dk, Dv>, S, KeyValueLookupMomentum<Dk, Dv>> {
  using Base = MomentumRule<MomentumDeltaRule<S, Dk, Dv>, S, KeyValueLookupMomentum<Dk, Dv>>;

 public:
  using Base::Base;
  using typename Base::OwnedState;
  static constexpr std::string_view name = "MomentumDeltaRule";

  template <class T> auto cast() const {
    return MomentumDeltaRule<T, Dk, Dv>(Base::signature().sizes());
  }

  void write(OwnedState& s, const WriteToken<MomentumDeltaRule>& t) const {
    scratch<S, Dv>(Base::signature().dv, [&](auto& update) FASTWEIGHTS_INLINE_LAMBDA {
      update.noalias() = s.W * t.lookup;
      update = t.rate * (update - t.value);
      detail::decay_and_add(s.momentum, t.momentum, update, t.key);
      s.W = t.decay * s.W - t.beta * s.momentum;
    });
  }

  MomentumWrite<S> momentum_write(const WriteToken<MomentumDeltaRule>& t) const {
    return {t.lookup.data(), -t.rate, t.momentum, t.decay, -t.beta};
  }
  void momentum_write_vjp(const WriteToken<MomentumDeltaRule>&, const MomentumGradient<S>& g,
                          WriteGradToken<MomentumDeltaRule>& dt) const {
    detail::add_gradient(dt.key, g.key);
    detail::add_gradient(dt.lookup, g.lookup);
    detail::add_gradient(dt.value, g.value);
    dt.rate -= g.rate;
    dt.momentum += g.momentum;
    dt.decay += g.keep;
    dt.beta -= g.write;
  }
};

}  // namespace fw
