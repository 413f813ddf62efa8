#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/memories/rules/momentum_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, θ, η, α): the rate of the gradient, the decay of the momentum, and how much is
/// forgotten. Read q.
template <int Dk, int Dv> struct KeyValueMomentum : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> rate;      ///< θ
    num<C> momentum;  ///< η
    num<C> forget;    ///< α, how much of W is forgotten
    static constexpr auto names = fw::names("key", "value", "rate", "momentum", "forget");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::strength, Role::decay, Role::strength);
  };
  template <int NewDk> using with_keys_of = KeyValueMomentum<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {1, 1}, {1, 1}}; }
};

//| `TitansMemory` | S = η S − 2θ (W k − v) kᵀ, W = (1 − α) W + S | y = W q | 9 d_v d_k |  |
//|   Behrouz et al. 2025, 2501.00663
/// The linear memory of Titans: gradient descent on ‖W k − v‖² with momentum S and forgetting.
///
///     S_t = η_t S_{t−1} − 2 θ_t (W_{t−1} k_t − v_t) k_tᵀ     W_t = (1 − α_t) W_{t−1} + S_t
///     y_t = W_t q_t
///
/// With η = 0 and α = 0 it is the delta rule with β = 2θ.
///
/// Shapes: W and S d_v×d_k, k and q d_k, v and y d_v, θ, η and α 1. Cost per token: 9 d_v d_k
/// flops. θ and α are in [0, 1], η in [0, 1]. Stable for θ‖k‖² ≤ (1 − α/2) (1 + η), if they are
/// constant: normalise the keys. Throws std::invalid_argument when a size does not fit. Behrouz,
/// Zhong, Mirrokni 2025, arXiv 2501.00663, eq. 11–15.
template <class S, int Dk = Dynamic, int Dv = Dk>
class TitansMemory : public MomentumRule<TitansMemory<S, Dk, Dv>, S, KeyValueMomentum<Dk, Dv>> {
  using Base = MomentumRule<TitansMemory<S, Dk, Dv>, S, KeyValueMomentum<Dk, Dv>>;

 public:
  using Base::Base;
  using typename Base::OwnedState;
  static constexpr std::string_view name = "TitansMemory";
  static constexpr bool adds_momentum = true;

  template <class T> auto cast() const {
    return TitansMemory<T, Dk, Dv>(Base::signature().sizes());
  }

  void write(OwnedState& s, const WriteToken<TitansMemory>& t) const {
    scratch<S, Dv>(Base::signature().dv, [&](auto& update) FASTWEIGHTS_INLINE_LAMBDA {
      update.noalias() = s.W * t.key;
      update = S(2) * t.rate * (t.value - update);
      detail::decay_and_add(s.momentum, t.momentum, update, t.key);
      s.W = (S(1) - t.forget) * s.W + s.momentum;
    });
  }
  Violation violation(const WriteToken<TitansMemory>& t) const {
    const double forget = detail::largest_strength(t.forget);
    if (forget > 1) return {"forget", forget, "0 to 1"};
    const double limit = (1 - forget / 2) * (1 + detail::largest_strength(t.momentum));
    return delta_violation(
        2 * detail::largest_strength(t.rate) / limit, t.key,
        "2 rate / ((1 - forget / 2) (1 + momentum)) times the squared norm of key");
  }

  MomentumWrite<S> momentum_write(const WriteToken<TitansMemory>& t) const {
    return {t.key.data(), S(2) * t.rate, t.momentum, S(1) - t.forget};
  }
  void momentum_write_vjp(const WriteToken<TitansMemory>&, const MomentumGradient<S>& g,
                          WriteGradToken<TitansMemory>& dt) const {
    detail::add_gradient(dt.key, g.key);
    detail::add_gradient(dt.key, g.lookup);
    detail::add_gradient(dt.value, g.value);
    dt.rate += S(2) * g.rate;
    dt.momentum += g.momentum;
    dt.forget -= g.keep;
  }
};

}  // namespace fw
