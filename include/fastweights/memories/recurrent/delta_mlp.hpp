#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/math/standardise.hpp>
#include <fastweights/memories/recurrent/positive_distribution.hpp>
#include <fastweights/memories/rules/correction.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write the preactivations of (k, v, β) for the first matrix and for the second. Read that of q.
template <int D, int Hidden> struct TwoKeyValueBetas : QueryOutput<D, D> {
  Index hidden = Hidden;  ///< h, the hidden units

  template <class C> struct Write {
    vec<C, D> key;              ///< the key of the first matrix before its activation, d rows
    vec<C, Hidden> value;       ///< the value of the first matrix before its activation, h rows
    num<C> beta;                ///< the write strength of the first matrix before its sigmoid
    vec<C, Hidden> hidden_key;  ///< the key of the second matrix before its activation, h rows
    vec<C, D> hidden_value;     ///< the value of the second matrix before its activation, d rows
    num<C> hidden_beta;         ///< the write strength of the second matrix before its sigmoid
    static constexpr auto names =
        fw::names("key", "value", "beta", "hidden_key", "hidden_value", "hidden_beta");
    static constexpr auto roles =
        fw::roles(Role::value, Role::value, Role::value, Role::value, Role::value, Role::value);
  };
  template <class C> struct Read {
    vec<C, D> query;
    static constexpr auto names = fw::names("query");
    static constexpr auto roles = fw::roles(Role::value);
  };

  Write<Extents> write() const {
    return {{this->dk, 1}, {hidden, 1}, {1, 1}, {hidden, 1}, {this->dk, 1}, {1, 1}};
  }
  Read<Extents> read() const { return {{this->dk, 1}}; }
};

//| `DeltaMlp` | the delta rule for both layers of a net | y = q + W_2 φ(W_1 φ(LN(q))) | 12 h d
//|   |  | Irie et al. 2021, 2106.06295
/// The Delta MLP: a fast net of two layers, each written by the delta rule.
///
///     W_1 ← W_1 + σ(β) (v − W_1 φ(k)) φ(k)ᵀ        W_2 ← W_2 + σ(β') (v' − W_2 φ(k')) φ(k')ᵀ
///     y = q + W_2 φ(W_1 φ(LN(q)))                  φ(x) = (ELU(x) + 1) / (Σ (ELU(x) + 1) + 1e-5)
///
/// Inputs are the preactivations of the slow weights; hidden_key = k' and so on. LN is a layer norm
/// whose weights are slow weights. Shapes: W_1 h×d, W_2 d×h, k, v', q and y d, v and k' h, β and β'
/// 1. Cost per token: 12 h d flops. φ bounds the keys, so both delta rules are stable for all
/// inputs. A FastWeightLayer around it is the layer of the source with one fast block. Throws
/// std::invalid_argument when a size does not fit. Irie, Schlag, Csordás, Schmidhuber 2021, arXiv
/// 2106.06295, section 3.
template <class S, int D = Dynamic, int Hidden = Dynamic> class DeltaMlp {
 public:
  using Scalar = S;
  using Signature = TwoKeyValueBetas<D, Hidden>;
  static constexpr std::string_view name = "DeltaMlp";

  /// Weights of the layer norm.
  template <class C> struct Slow {
    vec<C, D> weight, bias;  ///< of the layer norm
    static constexpr auto names = fw::names("weight", "bias");
  };
  template <class C> struct State {
    mat<C, Hidden, D> first;   ///< W_1
    mat<C, D, Hidden> second;  ///< W_2
    Slow<C> slow;
    static constexpr auto names = fw::names("first", "second", "slow");
  };
  using OwnedState = State<Owned<S>>;

  explicit DeltaMlp(Index d = D, Index hidden = Hidden) : signature_{{d, d}, hidden} {
    signature_.check(name);
    detail::check_size<Hidden>(name, "the hidden size", hidden);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index d = signature_.dk, h = signature_.hidden;
    return {{h, d}, {d, h}, {{d, 1}, {d, 1}}};
  }
  OwnedState initial_state() const {
    auto s = detail::zeros<OwnedState>(state_extents());
    s.slow.weight.setOnes();
    return s;
  }
  template <class T> auto cast() const {
    return DeltaMlp<T, D, Hidden>(signature_.dk, signature_.hidden);
  }

  void write(OwnedState& s, const WriteToken<DeltaMlp>& t) const {
    write(s.first, t.key, t.value, t.beta);
    write(s.second, t.hidden_key, t.hidden_value, t.hidden_beta);
  }
  void read(const OwnedState& s, const ReadToken<DeltaMlp>& t, OutToken<DeltaMlp> y) const {
    with_activations(
        s, t.query, [&](const auto&, S, const auto&, const auto&, const auto&, const auto& active) {
          y.output = t.query;
          y.output.noalias() += s.second * active;
        });
  }
  void write_vjp(const OwnedState& s, const WriteToken<DeltaMlp>& t, OwnedState& ds,
                 WriteGradToken<DeltaMlp> dt) const {
    write_vjp(s.first, t.key, t.value, t.beta, ds.first, dt.key, dt.value, dt.beta);
    write_vjp(s.second, t.hidden_key, t.hidden_value, t.hidden_beta, ds.second, dt.hidden_key,
              dt.hidden_value, dt.hidden_beta);
  }
  void read_vjp(const OwnedState& s, const ReadToken<DeltaMlp>& t, const OutGradToken<DeltaMlp>& dy,
                OwnedState& ds, ReadGradToken<DeltaMlp> dt) const {
    using detail::PositiveDistribution;
    dt.query += dy.output;
    with_activations(s, t.query,
                     [&](const auto& x, S scale, const auto& normed, const auto& input,
                         const auto& hidden, const auto& active) {
                       scratch<S, Hidden, 2>(signature_.hidden, [&](auto& dactive, auto& dhidden) {
                         dactive.setZero(), dhidden.setZero();
                         detail::product_vjp(s.second, active, dy.output, ds.second, dactive);
                         PositiveDistribution::vjp(hidden, dactive, dhidden);
                         scratch<S, D, 2>(signature_.dk, [&](auto& dinput, auto& dnormed) {
                           dinput.setZero(), dnormed.setZero();
                           detail::product_vjp(s.first, input, dhidden, ds.first, dinput);
                           PositiveDistribution::vjp(normed, dinput, dnormed);
                           ds.slow.bias += dnormed;
                           ds.slow.weight += dnormed.cwiseProduct(x);
                           dnormed.array() *= s.slow.weight.array();
                           detail::standardise_vjp(x, scale, dnormed);
                           dt.query += dnormed;
                         });
                       });
                     });
  }

 private:
  // Calls f(q standardised, its scale, LN(q), φ of it, W_1 φ, φ of it).
  template <class Q, class F>
  void with_activations(const OwnedState& s, const Q& query, const F& f) const {
    scratch<S, D, 3>(signature_.dk, [&](auto& x, auto& normed, auto& input) {
      scratch<S, Hidden, 2>(signature_.hidden, [&](auto& hidden, auto& active) {
        x = query;
        const S scale = detail::standardise(x, S(1e-5));
        normed = s.slow.weight.cwiseProduct(x) + s.slow.bias;
        detail::PositiveDistribution::map(normed, input);
        hidden.noalias() = s.first * input;
        detail::PositiveDistribution::map(hidden, active);
        f(x, scale, normed, input, hidden, active);
      });
    });
  }

  template <class W, class K, class V>
  static void write(W& w, const K& key, const V& value, const S& beta) {
    scratch<S, K::RowsAtCompileTime>(key.size(), [&](auto& k) {
      detail::PositiveDistribution::map(key, k);
      detail::correct<V::RowsAtCompileTime>(w, k, value, Sigmoid().value(beta), S(1), k);
    });
  }
  template <class W, class K, class V, class DK, class DV>
  static void write_vjp(const W& w, const K& key, const V& value, const S& beta, W& dw, DK& dkey,
                        DV& dvalue, S& dbeta) {
    scratch<S, K::RowsAtCompileTime, 2>(key.size(), [&](auto& k, auto& dk) {
      detail::PositiveDistribution::map(key, k);
      dk.setZero();
      const S strength = Sigmoid().value(beta);
      S dstrength(0), ddecay(0);
      detail::correct_vjp<V::RowsAtCompileTime>(w, k, value, strength, S(1), k, dw, dk, dvalue,
                                                dstrength, ddecay, dk);
      detail::PositiveDistribution::vjp(key, dk, dkey);
      dbeta += dstrength * strength * (S(1) - strength);
    });
  }

  Signature signature_;
};

}  // namespace fw
