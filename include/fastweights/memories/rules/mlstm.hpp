#pragma once

#include <cmath>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/memories/rules/correction.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, i, f): an input gate and a forget gate before their activation, any numbers. Read
/// q.
template <int Dk, int Dv> struct KeyValueGates : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> input_gate;   ///< i, before e^i
    num<C> forget_gate;  ///< f, before the sigmoid
    static constexpr auto names = fw::names("key", "value", "input_gate", "forget_gate");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::value, Role::value);
  };
  template <int NewDk> using with_keys_of = KeyValueGates<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {1, 1}}; }
};

//| `Mlstm` | W = σ(f) W + e^i v kᵀ, n = σ(f) n + e^i k, both stored divided by e^m | y = W q /
//|   max(\|n·q\|, e^−m) | 5 d_v d_k |  | Beck et al. 2024, 2405.04517
/// mLSTM, the matrix memory of xLSTM: an exponential input gate, a sigmoid forget gate, and a
/// normaliser. W and n are stored divided by e^m, so that no exponential overflows.
///
///     m_t = max(log σ(f_t) + m_{t−1}, i_t)
///     α = e^{log σ(f_t) + m_{t−1} − m_t}        β = e^{i_t − m_t}
///     W_t = α W_{t−1} + β v_t k_tᵀ              n_t = α n_{t−1} + β k_t
///     y_t = W_t q_t / (max(|n_t·q_t|, e^{−m_t}) + ε)
///
/// Except for ε, y does not depend on m. The paper divides keys by √d_k; the caller does it here,
/// or divides queries, which gives the same y.
///
/// Shapes: W d_v×d_k, n, k and q d_k, v and y d_v, m, i and f 1. Cost per token: 5 d_v d_k flops.
/// Stable for all gates and keys: α and β are at most 1. A zero query reads 0. Throws
/// std::invalid_argument when a size does not fit or ε is not above 0. Beck et al. 2024, arXiv
/// 2405.04517, eq. 19–27, with the ε of its code, 1e-6.
template <class S, int Dk = Dynamic, int Dv = Dk> class Mlstm {
 public:
  using Scalar = S;
  using Signature = KeyValueGates<Dk, Dv>;
  static constexpr std::string_view name = "Mlstm";
  static constexpr auto decay_kind = detail::DecayKind::scalar;
  static constexpr bool has_delta_term = false;

  template <class C> struct State {
    mat<C, Dv, Dk> W;
    vec<C, Dk> normaliser;  ///< n
    num<C> log_scale;       ///< m
    static constexpr auto names = fw::names("W", "normaliser", "log_scale");
  };
  using OwnedState = State<Owned<S>>;

  explicit Mlstm(Sizes<Dk, Dv> sizes = {}, S epsilon = S(1e-6))
      : signature_{{sizes.key_size, sizes.value_size}}, epsilon_(epsilon) {
    signature_.check(name);
    detail::check_above_zero(name, "epsilon", epsilon);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    return {{signature_.dv, signature_.dk}, {signature_.dk, 1}, {1, 1}};
  }
  template <class T> auto cast() const { return Mlstm<T, Dk, Dv>(signature_.sizes(), T(epsilon_)); }

  void write(OwnedState& s, const WriteToken<Mlstm>& t) const {
    const Gates g = gates(s, t);
    s.log_scale = g.log_scale;
    s.W *= g.forget;
    s.W.noalias() += (g.input * t.value) * t.key.transpose();
    s.normaliser = g.forget * s.normaliser + g.input * t.key;
  }
  void read(const OwnedState& s, const ReadToken<Mlstm>& t, OutToken<Mlstm> y) const {
    detail::set_product_with_vector(y.output, s.W, t.query);
    y.output *= inverse(s, detail::product_sum(s.normaliser, t.query)).value;
  }
  void write_vjp(const OwnedState& s, const WriteToken<Mlstm>& t, OwnedState& ds,
                 WriteGradToken<Mlstm> dt) const {
    const Gates g = gates(s, t);
    const S dforget =
        detail::product_sum(s.W, ds.W) + detail::product_sum(s.normaliser, ds.normaliser);
    S dinput(0);
    scratch<S, Dv>(signature_.dv, [&](auto& written) {
      written.noalias() = ds.W * t.key;
      dinput = detail::product_sum(t.value, written) + detail::product_sum(t.key, ds.normaliser);
      dt.value += g.input * written;
    });
    dt.key.noalias() += g.input * (ds.W.transpose() * t.value);
    dt.key += g.input * ds.normaliser;
    // The larger of the two exponents is m, and its exponential is the constant 1.
    const S dlower = g.keeps_scale ? S(g.input * dinput) : S(g.forget * dforget);
    const S dlarger = ds.log_scale - dlower;
    const S dkept = g.keeps_scale ? dlarger : dlower;
    dt.input_gate += g.keeps_scale ? dlower : dlarger;
    dt.forget_gate += dkept * Sigmoid().value(S(-t.forget_gate));
    ds.log_scale = dkept;
    ds.W *= g.forget;
    ds.normaliser *= g.forget;
  }
  void read_vjp(const OwnedState& s, const ReadToken<Mlstm>& t, const OutGradToken<Mlstm>& dy,
                OwnedState& ds, ReadGradToken<Mlstm> dt) const {
    const Inverse inverse_of = inverse(s, detail::product_sum(s.normaliser, t.query));
    scratch<S, Dv>(signature_.dv, [&](auto& numerator) {
      numerator.noalias() = s.W * t.query;
      const S dinverse = detail::product_sum(numerator, dy.output);
      ds.log_scale += dinverse * inverse_of.by_log_scale;
      const S dproduct = dinverse * inverse_of.by_product;
      ds.normaliser += dproduct * t.query;
      dt.query += dproduct * s.normaliser;
      numerator = inverse_of.value * dy.output;
      detail::product_vjp(s.W, t.query, numerator, ds.W, dt.query);
    });
  }

  /// The kernels' coefficients of a token. Updates the normaliser.
  template <class StateLike>
  detail::TokenCoefficients<S> coefficients(StateLike& s, const WriteToken<Mlstm>& t,
                                            const ReadToken<Mlstm>& query) const {
    const Gates g = gates(s, t);
    s.log_scale = g.log_scale;
    s.normaliser = g.forget * s.normaliser + g.input * t.key;
    detail::TokenCoefficients<S> c;
    c.value_scale = g.input;
    c.decay = g.forget;
    c.read_scale = inverse(s, detail::product_sum(s.normaliser, query.query)).value;
    return c;
  }

 private:
  struct Gates {
    S log_scale, forget, input;  // m_t, α, β
    bool keeps_scale;            // m_t is that of the decayed state, not of the token
  };
  template <class StateLike> static Gates gates(const StateLike& s, const WriteToken<Mlstm>& t) {
    using std::exp;
    const S kept = s.log_scale - detail::softplus(S(-t.forget_gate)), written = t.input_gate;
    if (detail::real_part(kept) >= detail::real_part(written))
      return {kept, S(1), exp(S(written - kept)), true};
    return {written, exp(S(kept - written)), S(1), false};
  }

  // 1 / (max(|n·q|, e^{−m}) + ε) and its derivatives.
  struct Inverse {
    S value, by_product, by_log_scale;
  };
  template <class StateLike> Inverse inverse(const StateLike& s, const S& product) const {
    using std::exp;
    const S sign = S(detail::real_part(product) < 0 ? -1 : 1), m = s.log_scale;
    const bool grows = detail::real_part(m) < 0;
    const S power = exp(grows ? m : S(-m));  // at most 1
    const S size = sign * product;
    const bool is_larger = grows ? detail::real_part(S(size * power)) > 1
                                 : detail::real_part(size) > detail::real_part(power);
    if (is_larger) {
      const S value = S(1) / (size + epsilon_);
      return {value, S(-sign * value * value), S(0)};
    }
    if (grows) {
      const S share = S(1) / (S(1) + epsilon_ * power);
      return {S(power * share), S(0), S(power * share * share)};
    }
    const S value = S(1) / (power + epsilon_);
    return {value, S(0), S(power * value * value)};
  }

  Signature signature_;
  S epsilon_;
};

}  // namespace fw
