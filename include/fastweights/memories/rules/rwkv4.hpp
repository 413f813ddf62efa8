#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/math/activations.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v) of d channels, k a logarithm of weights. Read with the same k and v: the read comes
/// first, and sees the token itself with a bonus.
template <int D> struct KeyValueChannels {
  Index d = D;  ///< rows of k, v and y

  template <class C> struct Write {
    vec<C, D> key;  ///< any numbers, before e^k
    vec<C, D> value;
    static constexpr auto names = fw::names("key", "value");
    static constexpr auto roles = fw::roles(Role::value, Role::value);
  };
  template <class C> struct Read {
    vec<C, D> key;
    vec<C, D> value;
    static constexpr auto names = fw::names("key", "value");
    static constexpr auto roles = fw::roles(Role::value, Role::value);
  };
  template <class C> struct Out {
    vec<C, D> output;
    static constexpr auto names = fw::names("output");
  };

  Write<Extents> write() const { return {{d, 1}, {d, 1}}; }
  Read<Extents> read() const { return {{d, 1}, {d, 1}}; }
  Out<Extents> out() const { return {{d, 1}}; }
};

namespace detail {

// The larger of two arrays by entry, by the real part of complex numbers.
template <class A, class B> auto larger_of(const A& a, const B& b) {
  using S = typename A::Scalar;
  if constexpr (Eigen::NumTraits<S>::IsComplex)
    return a.binaryExpr(
        b, [](const S& x, const S& y) { return real_part(x) >= real_part(y) ? x : y; });
  else
    return a.max(b);
}

}  // namespace detail

//| `Rwkv4` | n = e^−w n + e^k ⊙ v, z = e^−w z + e^k, vectors, both stored divided by e^m | y =
//|   (n + e^(u + k) ⊙ v) / (z + e^(u + k)), read first | 19 d and 4 d exponentials |  | Peng et
//|   al. 2023, 2305.13048
/// The WKV memory of RWKV-4: for every channel the mean of all values so far, with weights e^k that
/// decay by e^{−w} a token, and the token itself with the weight e^{u + k}. By entry:
///
///     y_t = (n_{t−1} + e^{u + k_t} v_t) / (d_{t−1} + e^{u + k_t})
///     n_t = e^{−w} n_{t−1} + e^{k_t} v_t      d_t = e^{−w} d_{t−1} + e^{k_t}
///
/// n and d are stored divided by e^m, where m is the largest logarithm of a weight so far, so that
/// no exponential overflows: m_t = max(m_{t−1} − w, k_t).
///
/// Shapes: all of them d. w (`rate`) and u (`bonus`) are slow weights of the state; the initial
/// state has w = 1, u = 0 and m = −1e30, which any key replaces. Cost per token: 19 d flops and 4 d
/// exponentials. An output is between the smallest and the largest value of its channel. Throws
/// std::invalid_argument when d does not fit. Peng et al. 2023, arXiv 2305.13048, eq. 16 and
/// appendix D.
template <class S, int D = Dynamic> class Rwkv4 {
 public:
  using Scalar = S;
  using Signature = KeyValueChannels<D>;
  static constexpr std::string_view name = "Rwkv4";
  static constexpr bool reads_first = true;

  template <class C> struct Slow {
    vec<C, D> rate;   ///< w, at least 0 for a decay
    vec<C, D> bonus;  ///< u
    static constexpr auto names = fw::names("rate", "bonus");
  };
  template <class C> struct State {
    vec<C, D> numerator;    ///< n e^{−m}
    vec<C, D> denominator;  ///< d e^{−m}
    vec<C, D> maximum;      ///< m
    Slow<C> slow;
    static constexpr auto names = fw::names("numerator", "denominator", "maximum", "slow");
  };
  using OwnedState = State<Owned<S>>;

  explicit Rwkv4(Index d = D) : d_(d) { detail::check_size<D>(name, "d", d); }

  Signature signature() const { return {d_}; }
  State<Extents> state_extents() const { return {{d_, 1}, {d_, 1}, {d_, 1}, {{d_, 1}, {d_, 1}}}; }
  OwnedState initial_state() const {
    auto s = detail::zeros<OwnedState>(state_extents());
    s.maximum.setConstant(S(-1e30));
    s.slow.rate.setOnes();
    return s;
  }
  template <class T> auto cast() const { return Rwkv4<T, D>(d_); }

  void write(OwnedState& s, const WriteToken<Rwkv4>& t) const {
    with_weights(s.maximum - s.slow.rate, t.key, [&](auto& maximum, auto& old, auto& own) {
      s.numerator.array() = old * s.numerator.array() + own * t.value.array();
      s.denominator.array() = old * s.denominator.array() + own;
      s.maximum = maximum;
    });
  }
  void read(const OwnedState& s, const ReadToken<Rwkv4>& t, OutToken<Rwkv4> y) const {
    with_weights(s.maximum, t.key + s.slow.bonus, [&](auto&, auto& old, auto& own) {
      y.output.array() =
          (old * s.numerator.array() + own * t.value.array()) / (old * s.denominator.array() + own);
    });
  }
  // The larger of the two logarithms is the new maximum, and its exponential is the constant 1.
  void write_vjp(const OwnedState& s, const WriteToken<Rwkv4>& t, OwnedState& ds,
                 WriteGradToken<Rwkv4> dt) const {
    with_weights(s.maximum - s.slow.rate, t.key, [&](auto& maximum, auto& old, auto& own) {
      for (Index i = 0; i < d_; ++i) {
        const S dn = ds.numerator[i], dd = ds.denominator[i], dm = ds.maximum[i];
        const S by_old = old[i] * (s.numerator[i] * dn + s.denominator[i] * dd);
        const S by_own = own[i] * (t.value[i] * dn + dd);
        const bool keeps = maximum[i] == S(s.maximum[i] - s.slow.rate[i]);
        const S dold = keeps ? S(dm - by_own) : by_old;
        dt.key[i] += keeps ? by_own : S(dm - by_old);
        dt.value[i] += own[i] * dn;
        ds.slow.rate[i] -= dold;
        ds.maximum[i] = dold;
        ds.numerator[i] = old[i] * dn;
        ds.denominator[i] = old[i] * dd;
      }
    });
  }
  // The output does not depend on the maximum by which both sums are divided.
  void read_vjp(const OwnedState& s, const ReadToken<Rwkv4>& t, const OutGradToken<Rwkv4>& dy,
                OwnedState& ds, ReadGradToken<Rwkv4> dt) const {
    with_weights(s.maximum, t.key + s.slow.bonus, [&](auto&, auto& old, auto& own) {
      for (Index i = 0; i < d_; ++i) {
        const S sum = old[i] * s.denominator[i] + own[i];
        const S output = (old[i] * s.numerator[i] + own[i] * t.value[i]) / sum;
        const S dn = dy.output[i] / sum, dd = -output * dn;
        const S by_own = own[i] * (t.value[i] * dn + dd);
        ds.numerator[i] += old[i] * dn;
        ds.denominator[i] += old[i] * dd;
        ds.maximum[i] += old[i] * (s.numerator[i] * dn + s.denominator[i] * dd);
        ds.slow.bonus[i] += by_own;
        dt.key[i] += by_own;
        dt.value[i] += own[i] * dn;
      }
    });
  }

 private:
  // Calls f(m, e^{a − m}, e^{b − m}) with arrays of m = max(a, b).
  template <class A, class B, class F> void with_weights(const A& a, const B& b, const F& f) const {
    scratch<S, D, 3>(d_, [&](auto& maximum, auto& of_a, auto& of_b) {
      auto m = maximum.array(), x = of_a.array(), y = of_b.array();
      m = detail::larger_of(a.array(), b.array());
      x = (a.array() - m).exp();
      y = (b.array() - m).exp();
      f(maximum, x, y);
    });
  }

  Index d_;
};

}  // namespace fw
