#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/mamba3_tokens.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, α, Δ, λ, a): decay, step size, share of the new token, and angles. Read (q, v, z)
/// with a gate z.
template <int Dk, int Dv, int Angles> struct KeyValueRotation : QueryOutput<Dk, Dv> {
  Index angle_count = Angles;  ///< the pairs of key rows that turn

  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> decay;
    num<C> step;            ///< Δ
    num<C> share;           ///< λ
    vec<C, Angles> angles;  ///< the angles a before tanh, one per pair
    static constexpr auto names = fw::names("key", "value", "decay", "step", "share", "angles");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::decay, Role::strength, Role::strength, Role::value);
  };
  template <class C> struct Read {
    vec<C, Dk> query;
    vec<C, Dv> value;
    vec<C, Dv> gate;
    static constexpr auto names = fw::names("query", "value", "gate");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::value);
  };

  Write<Extents> write() const {
    return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {1, 1}, {1, 1}, {angle_count, 1}};
  }
  Read<Extents> read() const { return {{this->dk, 1}, {this->dv, 1}, {this->dv, 1}}; }
};

//| `Mamba3` | W = α W + (1 − λ) Δ α v′ k̃′ᵀ + λ Δ v k̃ᵀ, k̃ rotated, v′ and k̃′ of the last token |
//|   y = (W q̃ + D v) ⊙ silu(z) | 7 d_v d_k |  | Lahoti et al. 2026, 2603.15569
/// The memory of Mamba-3 with one input and one output (SISO): gated linear attention that rotates
/// keys and queries by accumulated angles, and writes the last and the new token (trapezoidal
/// rule).
///
///     θ_t = θ_{t−1} + π Δ_t tanh(a_t)  mod 2π       k̃_t = R(θ_t) (k_t + b_k)
///     W_t = α_t W_{t−1} + (1 − λ_t) Δ_t α_t v_{t−1} k̃_{t−1}ᵀ + λ_t Δ_t v_t k̃_tᵀ
///     y_t = (W_t R(θ_t) (q_t + b_q) + D v_t) ⊙ silu(z_t)
///
/// R(θ) rotates the entries (2i, 2i+1) by θ_i and leaves entries beyond the last angle. With a = 0,
/// λ = 1, Δ = 1 and without biases W is that of GatedLinearAttention with KeyValueDecay.
///
/// Shapes: W d_v×d_k, k, q, b_k and b_q d_k, v, z and y d_v, α, Δ, λ and D 1, a and θ m ≤ d_k/2.
/// The state also has the last rotated key and the last value. b_k, b_q and D (`skip`) are slow
/// weights of the state. Cost per token: 7 d_v d_k flops. Δ is in [0, 2], λ and α in [0, 1]; then
/// it is stable. Throws std::invalid_argument when a size does not fit. Lahoti et
/// al. 2026, arXiv 2603.15569.
template <class S, int Dk = Dynamic, int Dv = Dk, int Angles = Dk == Dynamic ? Dynamic : Dk / 2>
class Mamba3 {
 public:
  using Scalar = S;
  using Signature = KeyValueRotation<Dk, Dv, Angles>;
  static constexpr std::string_view name = "Mamba3";
  static constexpr auto decay_kind = detail::DecayKind::scalar;
  static constexpr bool has_delta_term = false;
  static constexpr Index corrections = 2;  // of the last and of the new token
  static constexpr Index key_buffers = 2, value_buffers = 1;

  template <class C> struct Slow {
    vec<C, Dk> key_bias;    ///< b_k
    vec<C, Dk> query_bias;  ///< b_q
    num<C> skip;            ///< D
    static constexpr auto names = fw::names("key_bias", "query_bias", "skip");
  };
  template <class C> struct State {
    mat<C, Dv, Dk> W;
    vec<C, Angles> angle;  ///< θ, in [0, 2π)
    vec<C, Dk> key;        ///< the last rotated key
    vec<C, Dv> value;      ///< the last value
    Slow<C> slow;
    static constexpr auto names = fw::names("W", "angle", "key", "value", "slow");
  };
  using OwnedState = State<Owned<S>>;

  /// As many angles as pairs of entries.
  explicit Mamba3(Sizes<Dk, Dv> sizes = {})
      : Mamba3(sizes, Angles == Dynamic ? sizes.key_size / 2 : Index(Angles)) {}
  /// `angles` pairs of key rows turn. Throws std::invalid_argument when a size is below 1, or
  /// unless `angles` is 0 to d_k / 2.
  Mamba3(Sizes<Dk, Dv> sizes, Index angles)
      : signature_{{sizes.key_size, sizes.value_size}, angles} {
    signature_.check(name);
    detail::check_angles<Angles>(name, angles, signature_.dk);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index dv = signature_.dv, dk = signature_.dk;
    return {{dv, dk}, {signature_.angle_count, 1}, {dk, 1}, {dv, 1}, {{dk, 1}, {dk, 1}, {1, 1}}};
  }
  template <class T> auto cast() const {
    return Mamba3<T, Dk, Dv, Angles>(signature_.sizes(), signature_.angle_count);
  }

  void write(OwnedState& s, const WriteToken<Mamba3>& t) const {
    const detail::TrapezoidWeights<S> c(t);
    s.W *= t.decay;
    s.W.noalias() += (c.last * s.value) * s.key.transpose();
    detail::turn(s.angle, t.step, t.angles);
    s.key = t.key + s.slow.key_bias;
    detail::rotate<Angles>(s.angle, s.key);
    s.value = t.value;
    s.W.noalias() += (c.token * s.value) * s.key.transpose();
  }
  Violation violation(const WriteToken<Mamba3>& t) const { return detail::share_violation(t); }
  void read(const OwnedState& s, const ReadToken<Mamba3>& t, OutToken<Mamba3> y) const {
    scratch<S, Dk>(signature_.dk, [&](auto& query) {
      query = t.query + s.slow.query_bias;
      detail::rotate<Angles>(s.angle, query);
      y.output.noalias() = s.W * query;
    });
    add_skip_and_gate(s, t, y.output);
  }
  void write_vjp(const OwnedState& s, const WriteToken<Mamba3>& t, OwnedState& ds,
                 WriteGradToken<Mamba3> dt) const {
    const detail::TrapezoidWeights<S> c(t);
    scratch<S, Angles>(signature_.angle_count, [&](auto& angle) {
      scratch<S, Dk>(signature_.dk, [&](auto& key) {
        scratch<S, Dv, 2>(signature_.dv, [&](auto& with_last, auto& with_token) {
          angle = s.angle;
          detail::turn(angle, t.step, t.angles);
          key = t.key + s.slow.key_bias;
          detail::rotate<Angles>(angle, key);
          with_last.noalias() = ds.W * s.key;
          with_token.noalias() = ds.W * key;
          detail::add_trapezoid_gradients(t, detail::product_sum(s.value, with_last),
                                          detail::product_sum(t.value, with_token), dt);
          dt.value += c.token * with_token + ds.value;
          ds.value = c.last * with_last;
          ds.key.noalias() += c.token * (ds.W.transpose() * t.value);
          detail::rotate_vjp(key, angle, ds.key, ds.angle);
          dt.key += ds.key;
          ds.slow.key_bias += ds.key;
          ds.key.noalias() = c.last * (ds.W.transpose() * s.value);
          detail::apply_decay_vjp(s.W, t.decay, ds.W, dt.decay);
          detail::add_turn_gradients(t.step, t.angles, ds.angle, dt.step, dt.angles);
        });
      });
    });
  }
  void read_vjp(const OwnedState& s, const ReadToken<Mamba3>& t, const OutGradToken<Mamba3>& dy,
                OwnedState& ds, ReadGradToken<Mamba3> dt) const {
    scratch<S, Dk, 2>(signature_.dk, [&](auto& query, auto& dquery) {
      scratch<S, Dv>(signature_.dv, [&](auto& sum) {
        query = t.query + s.slow.query_bias;
        detail::rotate<Angles>(s.angle, query);
        sum.noalias() = s.W * query;
        sum += s.slow.skip * t.value;
        detail::silu_gate_vjp(t.gate, dy.output, sum, dt.gate);
        dt.value += s.slow.skip * sum;
        ds.slow.skip += detail::product_sum(t.value, sum);
        dquery.setZero();
        detail::product_vjp(s.W, query, sum, ds.W, dquery);
        detail::rotate_vjp(query, s.angle, dquery, ds.angle);
        dt.query += dquery;
        ds.slow.query_bias += dquery;
      });
    });
  }

  /// True if the kernels step and scan.
  // A read of a tiny W is complete, so the scan by kernels would finish its outputs twice.
  static constexpr bool by_kernel = detail::KernelScalar<S> && !detail::are_tiny(Dv);
  void step(OwnedState& s, const WriteToken<Mamba3>& t, const ReadToken<Mamba3>& query,
            OutToken<Mamba3> out) const requires by_kernel {
    if constexpr (by_kernel)  // clang++ 14 instantiates this even if the constraint does not hold
      detail::step_by_kernel(*this, s, t, query, out);
    add_skip_and_gate(s, query, out.output);
  }
  void scan(OwnedState& s, const WriteSequence<Mamba3>& inputs, const ReadSequence<Mamba3>& queries,
            OutSequence<Mamba3> out) const requires by_kernel {
    if constexpr (by_kernel) detail::scan_by_kernel(*this, s, inputs, queries, out);
    for (Index t = 0; t < queries.query.cols(); ++t) {
      auto y = out.output.col(t);
      add_skip_and_gate(s, detail::token_at<ReadToken<Mamba3>>(queries, signature_.read(), t), y);
    }
  }
  /// The kernels' correction: v_{t−1} under the last key, then v_t under the new one.
  template <class StateLike>
  void correction(StateLike& s, const WriteToken<Mamba3>& t, const ReadToken<Mamba3>& q, Index j,
                  S* buffer, detail::Correction<S>& c) const requires by_kernel {
    using Key = Eigen::Map<Eigen::Matrix<S, Dk, 1>>;
    Key key(buffer, signature_.dk), query(buffer + signature_.dk, signature_.dk);
    Eigen::Map<Eigen::Matrix<S, Dv, 1>> value(buffer + 2 * signature_.dk, signature_.dv);
    if (j == 0) {
      value = s.value;
      c.value = value.data();
      c.coefficients.beta = detail::TrapezoidWeights<S>(t).last;
      c.coefficients.decay = t.decay;
    } else {
      detail::turn(s.angle, t.step, t.angles);
      s.key = t.key + s.slow.key_bias;
      query = q.query + s.slow.query_bias;
      detail::rotate<Angles>(s.angle, s.key, query);
      s.value = t.value;
      c.query = query.data();
      c.coefficients.beta = detail::TrapezoidWeights<S>(t).token;
    }
    key = s.key;
    c.key = c.bonus_key = key.data();
  }

 private:
  template <class Y>
  static void add_skip_and_gate(const OwnedState& s, const ReadToken<Mamba3>& t, Y& y) {
    y += s.slow.skip * t.value;
    detail::multiply_by_silu(t.gate, y);
  }

  Signature signature_;
};

}  // namespace fw
