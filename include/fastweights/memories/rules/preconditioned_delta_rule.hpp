#pragma once

#include <cmath>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/preconditioned_backward.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, β, α, β_a, α_a), read q. The decay α of W is one number (`Decays` = 1) or one per
/// key row; β_a and α_a are the write strength and the decay of the preconditioner.
template <int Dk, int Dv, int Decays> struct PreconditionedKeyValue : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> beta;
    std::conditional_t<Decays == 1, num<C>, vec<C, Decays>> decay;
    num<C> moment_beta;   ///< β_a
    num<C> moment_decay;  ///< α_a
    static constexpr auto names =
        fw::names("key", "value", "beta", "decay", "moment_beta", "moment_decay");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::strength, Role::decay, Role::strength, Role::decay);
  };
  template <int NewDk>
  using with_keys_of = PreconditionedKeyValue<NewDk, Dv, Decays == Dk ? NewDk : Decays>;

  Write<Extents> write() const {
    return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {Decays == 1 ? 1 : this->dk, 1}, {1, 1}, {1, 1}};
  }
};

//| `PreconditionedDeltaRule` | the gated delta rule with a smaller write to frequent key rows |
//|   y = W q | 7 d_v d_k |  | Tumma et al. 2026, 2604.21100
/// The preconditioned delta rule: key rows that were written often get smaller updates.
///
///     A_t = α_a A_{t−1} + β_a k_t ⊙ k_t        r = log(A_t + 1e-6) − ρ
///     k̂_t = 1.5^{−r/(1+|r|)} ⊙ k_t            W̄_t = α_t W_{t−1} (or W_{t−1} diag(α_t))
///     W_t = W̄_t + β_t (v_t − W̄_t k_t) k̂_tᵀ   y_t = W_t q_t
///
/// With `Decays` = 1 it is the preconditioned gated delta rule, with `Decays` = d_k preconditioned
/// Kimi delta attention.
///
/// Shapes: W d_v×d_k, A, k and q d_k, v and y d_v, β, β_a and α_a 1, α 1 or d_k. ρ, the logarithm
/// of the scale of A, is a slow weight. Cost per token: 7 d_v d_k flops. β is in [0, 2]. Stable for
/// β‖k‖² ≤ 4/3: normalise the keys. A zero key writes nothing. Throws std::invalid_argument when a
/// size does not fit. Tumma et al. 2026, arXiv 2604.21100.
template <class S, int Dk = Dynamic, int Dv = Dk, int Decays = 1> class PreconditionedDeltaRule {
 public:
  using Scalar = S;
  using Signature = PreconditionedKeyValue<Dk, Dv, Decays>;
  static constexpr std::string_view name = "PreconditionedDeltaRule";
  static constexpr auto decay_kind =
      Decays == 1 ? detail::DecayKind::scalar : detail::DecayKind::per_channel;
  static constexpr bool has_delta_term = true;
  static constexpr Index key_buffers = 1, value_buffers = 0;

  template <class C> struct Slow {
    num<C> log_scale;  ///< ρ
    static constexpr auto names = fw::names("log_scale");
  };
  template <class C> struct State {
    mat<C, Dv, Dk> W;
    vec<C, Dk> A;  ///< the decayed sum of β_a k ⊙ k, d_k rows
    Slow<C> slow;
    static constexpr auto names = fw::names("W", "A", "slow");
  };
  using OwnedState = State<Owned<S>>;

  explicit PreconditionedDeltaRule(Sizes<Dk, Dv> sizes = {})
      : signature_{{sizes.key_size, sizes.value_size}} {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    return {{signature_.dv, signature_.dk}, {signature_.dk, 1}, {{1, 1}}};
  }
  template <class T> auto cast() const {
    return PreconditionedDeltaRule<T, Dk, Dv, Decays>(signature_.sizes());
  }

  void write(OwnedState& s, const WriteToken<PreconditionedDeltaRule>& t) const {
    s.A = t.moment_decay * s.A + t.moment_beta * t.key.cwiseProduct(t.key);
    scratch<S, Dk, 2>(signature_.dk, [&](auto& lookup, auto& key) FASTWEIGHTS_INLINE_LAMBDA {
      lookup = detail::decayed(t.decay, t.key);
      precondition(s.A, s.slow.log_scale, t.key, key);
      detail::correct<Dv>(s.W, lookup, t.value, t.beta, t.decay, key);
    });
  }
  Violation violation(const WriteToken<PreconditionedDeltaRule>& t) const {
    return delta_violation(S(1.5) * t.beta, t.key, "1.5 times beta times the squared norm of key");
  }
  void read(const OwnedState& s, const ReadToken<PreconditionedDeltaRule>& t,
            OutToken<PreconditionedDeltaRule> y) const {
    detail::set_product_with_vector(y.output, s.W, t.query);
  }
  void write_vjp(const OwnedState& s, const WriteToken<PreconditionedDeltaRule>& t, OwnedState& ds,
                 WriteGradToken<PreconditionedDeltaRule> dt) const {
    scratch<S, Dk, 5>(signature_.dk,
                      [&](auto& lookup, auto& key, auto& A, auto& dlookup, auto& dkey) {
                        lookup = detail::decayed(t.decay, t.key);
                        A = t.moment_decay * s.A + t.moment_beta * t.key.cwiseProduct(t.key);
                        precondition(A, s.slow.log_scale, t.key, key);
                        dlookup.setZero();
                        dkey.setZero();
                        detail::correct_vjp<Dv>(s.W, lookup, t.value, t.beta, t.decay, key, ds.W,
                                                dlookup, dt.value, dt.beta, dt.decay, dkey);
                        detail::add_scale_vjp(t.key, dlookup, dt.decay);
                        dt.key += detail::decayed(t.decay, dlookup);
                        for (Index j = 0; j < key.size(); ++j) {
                          const S k = t.key[j];
                          const Scale scale = scale_of(A[j], s.slow.log_scale);
                          const S dr = scale.slope * k * dkey[j];
                          const S dA = ds.A[j] + dr / (A[j] + epsilon());
                          ds.slow.log_scale -= dr;
                          dt.moment_decay += s.A[j] * dA;
                          dt.moment_beta += k * k * dA;
                          dt.key[j] += scale.value * dkey[j] + S(2) * t.moment_beta * k * dA;
                          ds.A[j] = t.moment_decay * dA;
                        }
                      });
  }
  void read_vjp(const OwnedState& s, const ReadToken<PreconditionedDeltaRule>& t,
                const OutGradToken<PreconditionedDeltaRule>& dy, OwnedState& ds,
                ReadGradToken<PreconditionedDeltaRule> dt) const {
    detail::product_vjp(s.W, t.query, dy.output, ds.W, dt.query);
  }

  /// The kernels' correction of a token.
  template <class StateLike>
  void correction(StateLike& s, const WriteToken<PreconditionedDeltaRule>& t,
                  const ReadToken<PreconditionedDeltaRule>&, Index, S* buffer,
                  detail::Correction<S>& c) const {
    Eigen::Map<Eigen::Matrix<S, Dk, 1>> key(buffer, signature_.dk);
    s.A = t.moment_decay * s.A + t.moment_beta * t.key.cwiseProduct(t.key);
    precondition(s.A, s.slow.log_scale, t.key, key);
    c.key = c.bonus_key = key.data();
    c.coefficients.beta = t.beta;
    if constexpr (Decays == 1) c.coefficients.decay = t.decay;
  }

  /// What is added to A in its logarithm.
  static S epsilon() { return S(1e-6); }
  /// The scales of a key's entries, 1.5^{−r/(1+|r|)}, and their derivatives with respect to r, of
  /// real arrays.
  template <class A, class Scales>
  static void set_scales(const A& moment, const S& log_scale, Scales& scale, Scales& slope) {
    scale = (moment + epsilon()).log() - log_scale;
    slope = (S(1) + scale.abs()).inverse();
    scale = (S(-log_1_5) * scale * slope).exp();
    slope = S(-log_1_5) * scale * slope.square();
  }

 private:
  static constexpr double log_1_5 = 0.40546510810816438198;

  // k̂
  template <class A, class K, class Preconditioned>
  static void precondition(const A& moment, const S& log_scale, const K& key, Preconditioned& to) {
    if constexpr (std::is_floating_point_v<S>) {
      to.array() = (moment.array() + epsilon()).log() - log_scale;
      to.array() = (S(-log_1_5) * to.array() / (S(1) + to.array().abs())).exp() * key.array();
    } else {
      for (Index j = 0; j < to.size(); ++j) to[j] = scale_of(moment[j], log_scale).value * key[j];
    }
  }

  // 1.5^{−r/(1+|r|)} and its derivative with respect to r.
  struct Scale {
    S value, slope;
  };
  static Scale scale_of(const S& A, const S& log_scale) {
    using std::exp, std::log;
    const S r = log(S(A + epsilon())) - log_scale;
    const S one_and_size = Eigen::numext::real(r) < 0 ? S(S(1) - r) : S(S(1) + r);
    const S value = exp(S(S(-log_1_5) * r / one_and_size));
    return {value, S(S(-log_1_5) * value / (one_and_size * one_and_size))};
  }

  Signature signature_;
};

namespace detail {

template <KernelScalar S, int Dk, int Dv, int Decays>
struct BackwardImplementation<PreconditionedDeltaRule<S, Dk, Dv, Decays>> {
  using type = PreconditionedBackward<PreconditionedDeltaRule<S, Dk, Dv, Decays>,
                                      PreconditionedTrace<S, Dk, Dv, Decays>>;
};

}  // namespace detail

}  // namespace fw
