#pragma once

#include <fastweights/memories/attention/token_history.hpp>
#include <fastweights/memories/rules/correction.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v). Read (q, r).
template <int Dk, int Dv> struct KeyValueTwoQueries : KeyValue<Dk, Dv> {
  template <class C> struct Read {
    vec<C, Dk> query;
    vec<C, Dk> correction;
    static constexpr auto names = fw::names("query", "correction");
    static constexpr auto roles = fw::roles(Role::key, Role::key);
  };
  template <int NewDk> using with_keys_of = KeyValueTwoQueries<NewDk, Dv>;

  Read<Extents> read() const { return {{this->dk, 1}, {this->dk, 1}}; }
};

//| `Parallax` | keeps the last tokens | y = Σ p_i (1 + m − k_i·r) v_i, p the softmax, m the
//|   mean of k_i·r | (4 d_k + 2 d_v) a token kept |  | Zuo et al. 2026, 2605.29157
/// Parallax: softmax attention whose weights are corrected by a second query r, to first order.
///
///     y_t = Σ_{i≤t} p_i (1 + m − b_i) v_i,   p = softmax of scale · k_i·q_t
///     b_i = k_i·r_t,   m = Σ_i p_i b_i
///
/// The corrected weights have sum 1. With r = 0 it is KeyValueCache that slides. The last
/// `capacity` tokens are kept. Reading an empty memory gives 0.
///
/// Shapes: k, q and r d_k, v and y d_v; state (d_k + d_v)·capacity. Cost per token: 4 d_k + 2 d_v
/// flops for every token kept. Throws std::invalid_argument when a size does not fit.
/// Zuo et al. 2026, arXiv 2605.29157.
template <class S, int Dk = Dynamic, int Dv = Dk> class Parallax {
 public:
  using Scalar = S;
  using Signature = KeyValueTwoQueries<Dk, Dv>;
  static constexpr std::string_view name = "Parallax";

  template <class C> struct State {
    TokenHistory<C, Dk, Dv> history;
    static constexpr auto names = fw::names("history");
  };
  using OwnedState = State<Owned<S>>;

  /// Throws std::invalid_argument when a size or the capacity is below 1.
  Parallax(Sizes<Dk, Dv> sizes, AttentionOptions options)
      : signature_{{{sizes.key_size, sizes.value_size}}}, options_(options) {
    signature_.check(name);
    detail::check_size<Dynamic>(name, "capacity", options.capacity);
    scale_ = S(detail::attention_scale(options, sizes.key_size));
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index n = options_.capacity;
    return {{{signature_.dk, n}, {signature_.dv, n}, {}}};
  }
  template <class T> auto cast() const { return Parallax<T, Dk, Dv>(signature_.sizes(), options_); }

  void write(OwnedState& s, const WriteToken<Parallax>& t) const {
    detail::append(s.history, t.key, t.value);
  }
  void read(const OwnedState& s, const ReadToken<Parallax>& t, OutToken<Parallax> y) const {
    const Index n = detail::held(s.history);
    if (n == 0) return y.output.setZero(), void();
    scratch<S, Dynamic, 2>(n, [&](auto& weights, auto& factors) {
      attend(s, t, weights, factors);
      weights.array() *= factors.array();
      y.output.noalias() = s.history.values.leftCols(n) * weights;
    });
  }
  void write_vjp(const OwnedState& s, const WriteToken<Parallax>&, OwnedState& ds,
                 WriteGradToken<Parallax> dt) const {
    detail::append_vjp(s.history, ds.history, dt.key, dt.value);
  }
  void read_vjp(const OwnedState& s, const ReadToken<Parallax>& t, const OutGradToken<Parallax>& dy,
                OwnedState& ds, ReadGradToken<Parallax> dt) const {
    const Index n = detail::held(s.history);
    if (n == 0) return;
    scratch<S, Dynamic, 4>(n, [&](auto& weights, auto& factors, auto& dcorrected, auto& d) {
      attend(s, t, weights, factors);
      const auto keys = s.history.keys.leftCols(n);
      auto dkeys = ds.history.keys.leftCols(n);
      d = weights.cwiseProduct(factors);
      ds.history.values.leftCols(n).noalias() += dy.output * d.transpose();
      dcorrected.noalias() = s.history.values.leftCols(n).transpose() * dy.output;
      const S dmean = detail::product_sum(weights, dcorrected);
      d.array() = weights.array() * (dmean - dcorrected.array());  // of b
      dkeys.noalias() += t.correction * d.transpose();
      dt.correction.noalias() += keys * d;
      // b enters the gradient of p up to a constant, which the softmax removes.
      d.array() = dcorrected.array() * factors.array() - dmean * factors.array();
      detail::attend_vjp(s.history, t.query, scale_, weights, d, ds.history, dt.query);
    });
  }

 private:
  // factors = 1 + m − b
  template <class P>
  void attend(const OwnedState& s, const ReadToken<Parallax>& t, P& weights, P& factors) const {
    detail::attend(s.history, t.query, scale_, weights);
    factors.noalias() = s.history.keys.leftCols(weights.size()).transpose() * t.correction;
    const S mean = detail::product_sum(weights, factors);
    factors.array() = S(1) + mean - factors.array();
  }

  Signature signature_;
  AttentionOptions options_;
  S scale_ = S(1);
};

}  // namespace fw
