#pragma once

#include <fastweights/core/state.hpp>
#include <fastweights/memories/rules/inner_models.hpp>
#include <fastweights/memories/rules/inner_objectives.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// The memory of Titans for any model f: gradient descent with momentum S and forgetting, for all
/// weights W of the model.
///
///     S_t = η_t S_{t−1} − 2 θ_t ∇ℓ_t(W_{t−1})     W_t = (1 − α_t) W_{t−1} + S_t
///     y_t = f(q_t; W_t)
///
/// | memory | f | ℓ |
/// |---|---|---|
/// | `TitansMlp` | B silu(A x) | ½‖f(k) − v‖² |
/// | `NormalisedTitans` | W x | ½‖LN(f(k)) − (v − k)‖², y = f(q) + LN(f(q)) |
///
/// NormalisedTitans is what flash-linear-attention has: its gradient through the layer norm is
/// missing parentheses, and a fixed W is not one of least loss (see NormGradient). With W x,
/// ½‖W k − v‖² and no layer norm it is TitansMemory.
///
/// Shapes: k and q d_k, v and y d_v, θ, η and α 1; A h×d_k, B d_v×h; W d×d. The state has the
/// weights twice. Cost per token: 9 h d_k + 11 h d_v flops, or 9 d². θ and α
/// are in [0, 1], η in [0, 1]. For a model that is not linear no bound on θ‖k‖² holds: steps are as
/// large as its slope and the error. A TitansMlp of zeros stays zero: start from other weights.
/// Throws std::invalid_argument when a size does not fit. Behrouz, Zhong, Mirrokni 2025, arXiv
/// 2501.00663, eq. 11–15.
template <class S, int Dk, int Dv, class Model, class Objective> class TitansLearner {
 public:
  using Scalar = S;
  using Signature = KeyValueMomentum<Dk, Dv>;
  static constexpr std::string_view name = "TitansLearner";
  static constexpr bool learns_initial_state = Model::zero_stays_zero;

  template <class C> struct State {
    typename Model::template Weights<C, Dk, Dv> weights;   ///< of f
    typename Model::template Weights<C, Dk, Dv> momentum;  ///< S
    typename Objective::template Slow<C, Dv> slow;
    static constexpr auto names = fw::names("weights", "momentum", "slow");
  };
  using OwnedState = State<Owned<S>>;

  /// Options of a TitansLearner.
  struct Options {
    Model model = {};          ///< f
    Objective objective = {};  ///< the loss and the output
  };

  explicit TitansLearner(Sizes<Dk, Dv> sizes = {}, Options options = {})
      : signature_{{sizes.key_size, sizes.value_size}}, options_(options) {
    signature_.check(name);
    options.model.check(name);
    options.objective.check(name, sizes.key_size, sizes.value_size);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const auto w = options_.model.template extents<Dk, Dv>(signature_.dk, signature_.dv);
    return {w, w, options_.objective.template extents<Dv>(signature_.dv)};
  }
  OwnedState initial_state() const {
    auto s = detail::zeros<OwnedState>(state_extents());
    Objective::start(s.slow);
    return s;
  }
  template <class T> auto cast() const {
    return TitansLearner<T, Dk, Dv, Model, Objective>(signature_.sizes(),
                                                      {options_.model, options_.objective});
  }

  void write(OwnedState& s, const WriteToken<TitansLearner>& t) const {
    for_each_leaf([&](auto& step) { step *= t.momentum; }, s.momentum);
    options_.model.descend(s.weights, t.key, S(S(-2) * t.rate), loss(s, t), s.momentum);
    for_each_leaf([&](auto& w, const auto& step) { w = (S(1) - t.forget) * w + step; }, s.weights,
                  s.momentum);
  }
  Violation violation(const WriteToken<TitansLearner>& t) const {
    if (detail::real_part(t.forget) <= 1) return {};
    return {"forget", static_cast<double>(detail::real_part(t.forget)), "0 to 1"};
  }
  void read(const OwnedState& s, const ReadToken<TitansLearner>& t,
            OutToken<TitansLearner> y) const {
    detail::answer(options_.model, options_.objective, s.weights, s.slow, t.query, y.output);
  }
  void write_vjp(const OwnedState& s, const WriteToken<TitansLearner>& t, OwnedState& ds,
                 WriteGradToken<TitansLearner> dt) const {
    for_each_leaf(
        [&](auto& dw, auto& dstep, const auto& w, const auto& step) {
          dstep += dw;  // the gradient of S_t
          dt.forget -= w.cwiseProduct(dw).sum();
          dt.momentum += step.cwiseProduct(dstep).sum();
          dw *= S(1) - t.forget;
        },
        ds.weights, ds.momentum, s.weights, s.momentum);
    const auto loss_vjp = [&](const auto& z, auto& d) {
      options_.objective.gradient_vjp(s.slow, t, z, d, ds.slow, dt);
    };
    S dscale(0);
    options_.model.descend_vjp(s.weights, t.key, S(S(-2) * t.rate), loss(s, t), loss_vjp,
                               ds.momentum, ds.weights, dt.key, dscale);
    dt.rate -= S(2) * dscale;
    for_each_leaf([&](auto& dstep) { dstep *= t.momentum; }, ds.momentum);
  }
  void read_vjp(const OwnedState& s, const ReadToken<TitansLearner>& t,
                const OutGradToken<TitansLearner>& dy, OwnedState& ds,
                ReadGradToken<TitansLearner> dt) const {
    detail::answer_vjp<Dv>(options_.model, options_.objective, s.weights, s.slow, t.query,
                           dy.output, ds.weights, ds.slow, dt.query);
  }

 private:
  // Replaces z by the gradient of the loss.
  auto loss(const OwnedState& s, const WriteToken<TitansLearner>& t) const {
    return [this, &s, &t](auto& z) { options_.objective.gradient(s.slow, t, z); };
  }

  Signature signature_;
  Options options_;
};

//| `TitansMlp` | S = η S − 2θ ∇½‖B silu(A k) − v‖², W = (1 − α) W + S for W = A, B | y = B
//|   silu(A q) | 9 h d_k + 11 h d_v |  | Behrouz et al. 2025, 2501.00663
//| `NormalisedTitans` | the same for W k, with the layer norm of TttLinear | y = W q + LN(W q)
//|   | 9 d² |  | flash-linear-attention
/// The Titans memory for a net with one hidden layer and no biases, y = B silu(A q).
template <class S, int Dk = Dynamic, int Dv = Dk, int Hidden = Dynamic>
using TitansMlp = TitansLearner<S, Dk, Dv, MlpModel<InnerSilu, Hidden, false>, SquaredObjective>;

/// The Titans memory for W k with the layer norm of TttLinear, as flash-linear-attention computes
/// it.
template <class S, int D = Dynamic>
using NormalisedTitans =
    TitansLearner<S, D, D, LinearModel<false>,
                  NormalisedObjective<Residual::answer, NormGradient::fla_titans>>;

}  // namespace fw
