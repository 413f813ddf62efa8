#pragma once

#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/memories/rules/correction.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, α) with one decay per key row. Read (q, k, v), with the k and v of the write: the
/// read comes first, and sees the token itself with a bonus.
template <int Dk, int Dv> struct KeyValueBonus : KeyValueVectorDecay<Dk, Dv> {
  template <class C> struct Read {
    vec<C, Dk> query;
    vec<C, Dk> key;
    vec<C, Dv> value;
    static constexpr auto names = fw::names("query", "key", "value");
    static constexpr auto roles = fw::roles(Role::key, Role::key, Role::value);
  };
  template <int NewDk> using with_keys_of = KeyValueBonus<NewDk, Dv>;

  Read<Extents> read() const { return {{this->dk, 1}, {this->dk, 1}, {this->dv, 1}}; }
};

//| `Rwkv6` | W = W diag(α) + v kᵀ after the read; with the same α for all tokens it is RWKV-5 |
//|   y = W q + v (u ⊙ k)·q | 5 d_v d_k |  | Peng et al. 2024, 2404.05892
/// RWKV-6: gated linear attention that reads before it writes. The token itself has the weights u
/// instead of a decay. With the same α for all tokens it is RWKV-5.
///
///     y_t = W_{t−1} q_t + v_t (u ⊙ k_t)·q_t     W_t = W_{t−1} diag(α_t) + v_t k_tᵀ
///
/// Shapes: W d_v×d_k, k, q, α and u d_k, v and y d_v. u is a slow weight of the state. Cost per
/// token: 5 d_v d_k flops. With a zero key the state decays and nothing is written. Throws
/// std::invalid_argument when a size does not fit. Peng et al. 2024, arXiv 2404.05892.
template <class S, int Dk = Dynamic, int Dv = Dk> class Rwkv6 {
 public:
  using Scalar = S;
  using Signature = KeyValueBonus<Dk, Dv>;
  static constexpr std::string_view name = "Rwkv6";
  static constexpr auto decay_kind = detail::DecayKind::per_channel;
  static constexpr bool has_delta_term = false, kernel_backward = true;
  static constexpr Index key_buffers = 1, value_buffers = 0;
  static constexpr bool reads_first = true;

  template <class C> struct Slow {
    vec<C, Dk> bonus;  ///< u
    static constexpr auto names = fw::names("bonus");
  };
  template <class C> struct State {
    mat<C, Dv, Dk> W;
    Slow<C> slow;
    static constexpr auto names = fw::names("W", "slow");
  };
  using OwnedState = State<Owned<S>>;

  explicit Rwkv6(Sizes<Dk, Dv> sizes = {}) : signature_{{{sizes.key_size, sizes.value_size}}} {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    return {{signature_.dv, signature_.dk}, {{signature_.dk, 1}}};
  }
  template <class T> auto cast() const { return Rwkv6<T, Dk, Dv>(signature_.sizes()); }

  void write(OwnedState& s, const WriteToken<Rwkv6>& t) const {
    detail::apply_decay(s.W, t.decay);
    s.W.noalias() += t.value * t.key.transpose();
  }
  void read(const OwnedState& s, const ReadToken<Rwkv6>& t, OutToken<Rwkv6> y) const {
    const S weight = s.slow.bonus.cwiseProduct(t.key).cwiseProduct(t.query).sum();
    detail::set_product_with_vector(y.output, s.W, t.query);
    y.output += weight * t.value;
  }
  void write_vjp(const OwnedState& s, const WriteToken<Rwkv6>& t, OwnedState& ds,
                 WriteGradToken<Rwkv6> dt) const {
    dt.value.noalias() += ds.W * t.key;
    dt.key.noalias() += ds.W.transpose() * t.value;
    detail::apply_decay_vjp(s.W, t.decay, ds.W, dt.decay);
  }
  void read_vjp(const OwnedState& s, const ReadToken<Rwkv6>& t, const OutGradToken<Rwkv6>& dy,
                OwnedState& ds, ReadGradToken<Rwkv6> dt) const {
    own_read_vjp(s, t, dy, ds, dt);
    detail::product_vjp(s.W, t.query, dy.output, ds.W, dt.query);
  }

  /// The kernels' correction of a token.
  template <class StateLike>
  void correction(StateLike& s, const WriteToken<Rwkv6>& t, const ReadToken<Rwkv6>&, Index,
                  S* buffer, detail::Correction<S>& c) const {
    Eigen::Map<Eigen::Matrix<S, Dk, 1>> bonus_key(buffer, signature_.dk);
    bonus_key = s.slow.bonus.cwiseProduct(t.key);
    c.bonus_key = bonus_key.data();
  }
  void correction_vjp(const OwnedState&, const WriteToken<Rwkv6>&, Index,
                      const detail::CorrectionGradient<S>& g, OwnedState&,
                      WriteGradToken<Rwkv6>& dt) const {
    detail::add_gradient(dt.key, g.key);
    detail::add_gradient(dt.value, g.value);
  }
  /// Adds the gradients of v (u ⊙ k)·q, the part of a read that does not come from W.
  void own_read_vjp(const OwnedState& s, const ReadToken<Rwkv6>& t, const OutGradToken<Rwkv6>& dy,
                    OwnedState& ds, ReadGradToken<Rwkv6>& dt) const {
    const auto& bonus = s.slow.bonus;
    const S weight = bonus.cwiseProduct(t.key).cwiseProduct(t.query).sum();
    const S dweight = detail::product_sum(dy.output, t.value);
    dt.value += weight * dy.output;
    dt.key += dweight * bonus.cwiseProduct(t.query);
    dt.query += dweight * bonus.cwiseProduct(t.key);
    ds.slow.bonus += dweight * t.key.cwiseProduct(t.query);
  }

 private:
  Signature signature_;
};

}  // namespace fw
