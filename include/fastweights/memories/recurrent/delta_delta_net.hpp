#pragma once

#include <fastweights/core/recurrent_signatures.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/memories/recurrent/delta_step.hpp>
#include <fastweights/memories/recurrent/positive_distribution.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write the preactivations of (k, v, β, q), where v has the 3d + 1 entries that a fast net makes.
template <int D> struct NestedKeyValueBeta : RecurrentOutput<D, D> {
  /// The rows that W makes: a query, a key, a value and β.
  static constexpr int made = D == Dynamic ? Dynamic : 3 * D + 1;

  template <class C> struct Write {
    vec<C, D> key;
    vec<C, made> value;  ///< of W, 3 d + 1 rows
    num<C> beta;
    vec<C, D> query;
    static constexpr auto names = fw::names("key", "value", "beta", "query");
    static constexpr auto roles = fw::roles(Role::value, Role::value, Role::value, Role::value);
  };

  Write<Extents> write() const {
    return {{this->dk, 1}, {3 * this->dk + 1, 1}, {1, 1}, {this->dk, 1}};
  }
};

//| `DeltaDeltaNet` | the delta rule for W, whose answer W φ(q) is the query, key, value and β
//|   of a delta rule for R | y = R φ(q′) | 6 (4 d + 1) d |  | Irie et al. 2021, 2106.06295
/// The Delta-Delta net: a delta net whose fast net is a delta net. The answer of W holds the query,
/// key, value and write strength for R.
///
///     W_t = W_{t−1} + σ(β_t) (v_t − W_{t−1} φ(k_t)) φ(k_t)ᵀ     [q', k', v', β'] = W_t φ(q_t)
///     R_t = R_{t−1} + σ(β') (v' − R_{t−1} φ(k')) φ(k')ᵀ         y_t = R_t φ(q')
///     φ(x) = (ELU(x) + 1) / (Σ (ELU(x) + 1) + 1e-5)
///
/// Inputs are the preactivations of the slow weights. Shapes: W (3d + 1)×d, R d×d, k, q and y d, v
/// 3d + 1, β 1. State: W, R and y, initially zero. Cost per token: 6 (4d + 1) d flops. φ bounds the
/// keys, so both delta rules are stable for all inputs. A FastWeightLayer around it is the layer of
/// the source. Throws std::invalid_argument when d does not fit. Irie, Schlag, Csordás, Schmidhuber
/// 2021, arXiv 2106.06295, section 3.
template <class S, int D = Dynamic> class DeltaDeltaNet {
 public:
  using Scalar = S;
  using Signature = NestedKeyValueBeta<D>;
  static constexpr std::string_view name = "DeltaDeltaNet";

  template <class C> struct State {
    mat<C, Signature::made, D> W;  ///< makes the query, key, value and β of R, (3 d + 1)×d
    mat<C, D, D> R;                ///< the second matrix, d×d
    vec<C, D> output;              ///< the last one, d rows
    static constexpr auto names = fw::names("W", "R", "output");
  };
  using OwnedState = State<Owned<S>>;

  explicit DeltaDeltaNet(Index d = D) : signature_{{d, d}} { signature_.check(name); }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index d = signature_.dk;
    return {{3 * d + 1, d}, {d, d}, {d, 1}};
  }
  template <class T> auto cast() const { return DeltaDeltaNet<T, D>(signature_.dk); }

  void write(OwnedState& s, const WriteToken<DeltaDeltaNet>& t) const {
    with_keys(t.key, t.query, [&](const auto& key, const auto& query) {
      scratch<S, Signature::made>(s.W.rows(), [&](auto& made) {
        made.setZero();
        detail::delta_step(s.W, detail::DeltaToken{key, t.value, sigmoid(t.beta), query}, made);
        const auto inner = parts(made);
        with_keys(inner.key, inner.query, [&](const auto& k, const auto& q) {
          s.output.setZero();
          detail::delta_step(s.R, detail::DeltaToken{k, inner.value, sigmoid(inner.beta), q},
                             s.output);
        });
      });
    });
  }
  void read(const OwnedState& s, const ReadToken<DeltaDeltaNet>&, OutToken<DeltaDeltaNet> y) const {
    y.output = s.output;
  }
  void write_vjp(const OwnedState& s, const WriteToken<DeltaDeltaNet>& t, OwnedState& ds,
                 WriteGradToken<DeltaDeltaNet> dt) const {
    with_keys(t.key, t.query, [&](const auto& key, const auto& query) {
      const detail::DeltaToken token{key, t.value, sigmoid(t.beta), query};
      scratch<S, Signature::made, 2>(s.W.rows(), [&](auto& made, auto& dmade) {
        made.setZero();
        detail::delta_output(s.W, token, made);
        dmade.setZero();
        inner_vjp(s, parts(made), ds, parts(dmade));
        token_vjp(s.W, token, dmade, ds.W, t, dt);
      });
    });
    ds.output.setZero();
  }
  void read_vjp(const OwnedState&, const ReadToken<DeltaDeltaNet>&,
                const OutGradToken<DeltaDeltaNet>& dy, OwnedState& ds,
                ReadGradToken<DeltaDeltaNet>) const {
    ds.output += dy.output;
  }

 private:
  static S sigmoid(const S& x) { return Sigmoid().value(x); }

  // Calls f(φ(key), φ(query)).
  template <class K, class Q, class F>
  void with_keys(const K& key, const Q& query, const F& f) const {
    scratch<S, D, 2>(signature_.dk, [&](auto& k, auto& q) {
      detail::PositiveDistribution::map(key, k);
      detail::PositiveDistribution::map(query, q);
      f(k, q);
    });
  }

  // The preactivations that W makes, or their gradients, in the order of the source.
  template <class M> auto parts(M& made) const {
    const Index d = signature_.dk;
    return detail::DeltaToken<decltype(made.template segment<D>(0, d)),
                              decltype(made.template segment<D>(0, d)), decltype((made[0])),
                              decltype(made.template segment<D>(0, d))>{
        made.template segment<D>(d, d), made.template segment<D>(2 * d, d), made[3 * d],
        made.template segment<D>(0, d)};
  }
  template <class Inner, class DInner>
  void inner_vjp(const OwnedState& s, const Inner& inner, OwnedState& ds, DInner dinner) const {
    with_keys(inner.key, inner.query, [&](const auto& k, const auto& q) {
      const detail::DeltaToken token{k, inner.value, sigmoid(inner.beta), q};
      token_vjp(s.R, token, ds.output, ds.R, inner, dinner);
    });
  }
  // The gradients of one delta rule with respect to the preactivations of its inputs.
  template <class W, class Token, class DY, class DW, class T, class DT>
  void token_vjp(const W& w, const Token& token, const DY& dy, DW& dw, const T& t, DT& dt) const {
    scratch<S, D, 2>(signature_.dk, [&](auto& dkey, auto& dquery) {
      dkey.setZero();
      dquery.setZero();
      S dbeta(0);
      detail::delta_step_vjp(w, token, dy, dw, detail::DeltaToken{dkey, dt.value, dbeta, dquery});
      detail::PositiveDistribution::vjp(t.key, dkey, dt.key);
      detail::PositiveDistribution::vjp(t.query, dquery, dt.query);
      dt.beta += dbeta * token.beta * (S(1) - token.beta);
    });
  }

  Signature signature_;
};

}  // namespace fw
