#pragma once

#include <cmath>
#include <fastweights/core/recurrent_signatures.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/memories/recurrent/delta_step.hpp>
#include <fastweights/memories/rules/normaliser.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `RecurrentDeltaNet` | the delta rule; k, v, β, q from x and tanh(y_{t−1}) | y = W q | d_v
//|   (10 d_k + 2 d_v) |  | Irie et al. 2021, 2106.06295
/// The recurrent delta net: the delta rule, with a slow net that uses the fast net's previous
/// output.
///
///     u = tanh(y_{t−1})    k' = softmax(k + R_k u)    q' = softmax(q + R_q u)    v' = v + R_v u
///     β' = σ(β + r·u)      W_t = W_{t−1} + β' (v' − W_{t−1} k') k'ᵀ              y_t = W_t q'
///
/// Inputs are the preactivations of the slow weights. Shapes: W d_v×d_k, R_k and R_q d_k×d_v, R_v
/// d_v×d_v, r d_v; k and q d_k, v and y d_v. State: W and y, initially zero, and the recurrent
/// weights R_k, R_q, R_v and r in `slow`. No write changes `slow`, so its gradient is that of the
/// initial state. A FastWeightLayer around the memory learns one `slow` per head. Cost per token:
/// d_v (10 d_k + 2 d_v) flops.
/// Throws std::invalid_argument when a size does not fit.
/// Irie, Schlag, Csordás, Schmidhuber 2021, arXiv 2106.06295, section 3.
template <class S, int Dk = Dynamic, int Dv = Dk> class RecurrentDeltaNet {
 public:
  using Scalar = S;
  using Signature = PreactivationKeyValueBeta<Dk, Dv>;
  static constexpr std::string_view name = "RecurrentDeltaNet";

  template <class C> struct Slow {
    mat<C, Dk, Dv> key;    ///< R_k
    mat<C, Dk, Dv> query;  ///< R_q
    mat<C, Dv, Dv> value;  ///< R_v
    vec<C, Dv> beta;
    static constexpr auto names = fw::names("key", "query", "value", "beta");

    /// Normal with standard deviation 1/√d_v, as in the source's code.
    template <class Generator> void initialise(Generator& random) {
      const double deviation = 1 / std::sqrt(static_cast<double>(beta.size()));
      for_each_leaf(
          [&](auto& leaf) {
            leaf = leaf.unaryExpr([&](const S&) { return S(deviation * random.normal()); });
          },
          *this);
    }
  };
  template <class C> struct State {
    mat<C, Dv, Dk> W;
    vec<C, Dv> output;
    Slow<C> slow;
    static constexpr auto names = fw::names("W", "output", "slow");
  };
  using OwnedState = State<Owned<S>>;

  explicit RecurrentDeltaNet(Sizes<Dk, Dv> sizes = {})
      : signature_{{sizes.key_size, sizes.value_size}} {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index dv = signature_.dv, dk = signature_.dk;
    return {{dv, dk}, {dv, 1}, {{dk, dv}, {dk, dv}, {dv, dv}, {dv, 1}}};
  }
  template <class T> auto cast() const { return RecurrentDeltaNet<T, Dk, Dv>(signature_.sizes()); }

  void write(OwnedState& s, const WriteToken<RecurrentDeltaNet>& t) const {
    with_inputs(
        s, t,
        [&](const auto&, const auto& key, const auto& value, const S& beta, const auto& query) {
          s.output.setZero();
          detail::delta_step(s.W, detail::DeltaToken{key, value, beta, query}, s.output);
        });
  }

  void read(const OwnedState& s, const ReadToken<RecurrentDeltaNet>&,
            OutToken<RecurrentDeltaNet> y) const {
    y.output = s.output;
  }

  void write_vjp(const OwnedState& s, const WriteToken<RecurrentDeltaNet>& t, OwnedState& ds,
                 WriteGradToken<RecurrentDeltaNet> dt) const {
    with_inputs(s, t,
                [&](const auto& context, const auto& key, const auto& value, const S& beta,
                    const auto& query) {
                  S dbeta(0);
                  scratch<S, Dk, 3>(signature_.dk, [&](auto& dkey, auto& dquery, auto& draw) {
                    scratch<S, Dv, 2>(signature_.dv, [&](auto& dvalue, auto& dcontext) {
                      dkey.setZero(), dquery.setZero(), dvalue.setZero(), dcontext.setZero();
                      detail::delta_step_vjp(s.W, detail::DeltaToken{key, value, beta, query},
                                             ds.output, ds.W,
                                             detail::DeltaToken{dkey, dvalue, dbeta, dquery});
                      draw.setZero();
                      SoftmaxMap().vjp(key, key, dkey, draw);
                      dt.key += draw;
                      detail::product_vjp(s.slow.key, context, draw, ds.slow.key, dcontext);
                      draw.setZero();
                      SoftmaxMap().vjp(query, query, dquery, draw);
                      dt.query += draw;
                      detail::product_vjp(s.slow.query, context, draw, ds.slow.query, dcontext);
                      dt.value += dvalue;
                      detail::product_vjp(s.slow.value, context, dvalue, ds.slow.value, dcontext);
                      dbeta *= beta * (S(1) - beta);
                      dt.beta += dbeta;
                      ds.slow.beta += dbeta * context;
                      dcontext += dbeta * s.slow.beta;
                      ds.output = dcontext - dcontext.cwiseProduct(context).cwiseProduct(context);
                    });
                  });
                });
  }

  void read_vjp(const OwnedState&, const ReadToken<RecurrentDeltaNet>&,
                const OutGradToken<RecurrentDeltaNet>& dy, OwnedState& ds,
                ReadGradToken<RecurrentDeltaNet>) const {
    ds.output += dy.output;
  }

 private:
  // Calls f(u, k', v', β', q').
  template <class F>
  void with_inputs(const OwnedState& s, const WriteToken<RecurrentDeltaNet>& t, const F& f) const {
    scratch<S, Dv, 2>(signature_.dv, [&](auto& context, auto& value) {
      scratch<S, Dk, 2>(signature_.dk, [&](auto& key, auto& query) {
        context = s.output.unaryExpr([](const S& each) { return Tanh().value(each); });
        key = t.key;
        key.noalias() += s.slow.key * context;
        SoftmaxMap().map(key, key);
        query = t.query;
        query.noalias() += s.slow.query * context;
        SoftmaxMap().map(query, query);
        value = t.value;
        value.noalias() += s.slow.value * context;
        const S beta = t.beta + s.slow.beta.cwiseProduct(context).sum();
        f(context, key, value, Sigmoid().value(beta), query);
      });
    });
  }

  Signature signature_;
};

}  // namespace fw
