#pragma once

#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/core/finite.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/math/linear_solvers.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <limits>

namespace fw::inline FASTWEIGHTS_ABI {

//| `MesaMemory` | W = α W + β v kᵀ, G = α G + β k kᵀ | y = W (G + diag(λ))⁻¹ q, exactly or by
//|   conjugate gradients | 5 d_v d_k + 3 d_k² and the solver |  | von Oswald et al. 2025,
//|   2506.05233
/// The memory of MesaNet: ridge regression from keys to values, with a decay. A read solves it.
///
///     W_t = α_t W_{t−1} + β_t v_t k_tᵀ      G_t = α_t G_{t−1} + β_t k_t k_tᵀ
///     y_t = W_t (G_t + diag(λ))⁻¹ q_t
///
/// With `ExactSolver` (the default) it is recursive least squares; `ConjugateGradients` takes a
/// number of steps. For large λ it is gated linear attention with q / λ.
///
/// Shapes: W d_v×d_k, G d_k×d_k, k, q and λ d_k, v and y d_v, α and β 1. λ, the ridge of every key
/// row, is a slow weight and starts at 1. Cost per token: 5 d_v d_k + 3 d_k² flops and those of the
/// solver (math/linear_solvers.hpp). β is in [0, 2]. λ must be positive and G positive
/// semidefinite, which writes keep; else a read may divide by 0. While the keys span fewer than d_k
/// dimensions, λ must also be above d_k units of rounding of the largest entry of G: with a smaller
/// one the matrix is singular to rounding, and the answer to a query outside of that span is noise
/// or not finite. fw::checked_step and checked_scan refuse this with the exact solver; other calls
/// do not look. Throws std::invalid_argument when a size does not fit. von
/// Oswald et al. 2025, arXiv 2506.05233.
template <class S, int Dk = Dynamic, int Dv = Dk, class Solver = ExactSolver> class MesaMemory {
 public:
  using Scalar = S;
  using Signature = KeyValueBetaDecay<Dk, Dv>;
  static constexpr std::string_view name = "MesaMemory";

  template <class C> struct Slow {
    vec<C, Dk> ridge;  ///< λ
    static constexpr auto names = fw::names("ridge");
  };
  template <class C> struct State {
    mat<C, Dv, Dk> W;
    mat<C, Dk, Dk> G;  ///< the decayed sum of β k kᵀ, d_k×d_k
    Slow<C> slow;
    static constexpr auto names = fw::names("W", "G", "slow");
  };
  using OwnedState = State<Owned<S>>;

  explicit MesaMemory(Sizes<Dk, Dv> sizes = {}, Solver solver = {})
      : signature_{{sizes.key_size, sizes.value_size}}, solver_(solver) {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index dk = signature_.dk;
    return {{signature_.dv, dk}, {dk, dk}, {{dk, 1}}};
  }
  OwnedState initial_state() const {
    auto s = detail::zeros<OwnedState>(state_extents());
    s.slow.ridge.setOnes();
    return s;
  }
  template <class T> auto cast() const {
    return MesaMemory<T, Dk, Dv, Solver>(signature_.sizes(), solver_);
  }

  void write(OwnedState& s, const WriteToken<MesaMemory>& t) const {
    scratch<S, Dk>(signature_.dk, [&](auto& key) FASTWEIGHTS_INLINE_LAMBDA {
      key = t.beta * t.key;
      detail::decay_and_add(s.W, t.decay, t.value, key);
      detail::decay_and_add(s.G, t.decay, t.key, key);
    });
  }
  /// True if G + diag(λ) can be solved after each of several writes: see fw::StateCondition.
  template <class F>
  void with_trial(const OwnedState& s, const F& f) const requires requires(const Solver& solver) {
    solver.smallest_pivot(s.G, s.slow.ridge);
  }
  {
    matrix_scratch<S>(signature_.dk, signature_.dk, [&](auto& g) {
      g = s.G;
      f([&](const WriteToken<MesaMemory>& t) {
        scratch<S, Dk>(signature_.dk, [&](auto& key) {
          key = t.beta * t.key;
          detail::decay_and_add(g, t.decay, t.key, key);
        });
        return ridge_violation(g, s.slow.ridge);
      });
    });
  }
  void read(const OwnedState& s, const ReadToken<MesaMemory>& t, OutToken<MesaMemory> y) const {
    solver_.with_solution(s.G, s.slow.ridge, t.query,
                          [&](const auto& x, const auto&) { y.output.noalias() = s.W * x; });
  }
  void write_vjp(const OwnedState& s, const WriteToken<MesaMemory>& t, OwnedState& ds,
                 WriteGradToken<MesaMemory> dt) const {
    scratch<S, Dv>(signature_.dv, [&](auto& written) {
      written.noalias() = ds.W * t.key;
      dt.beta += detail::product_sum(t.value, written);
      dt.value += t.beta * written;
    });
    scratch<S, Dk>(signature_.dk, [&](auto& dkey) {
      dkey.noalias() = ds.G * t.key;
      dt.beta += detail::product_sum(t.key, dkey);
      dkey.noalias() += ds.G.transpose() * t.key;
      dkey.noalias() += ds.W.transpose() * t.value;
      dt.key += t.beta * dkey;
    });
    detail::apply_decay_vjp(s.W, t.decay, ds.W, dt.decay);
    detail::apply_decay_vjp(s.G, t.decay, ds.G, dt.decay);
  }
  void read_vjp(const OwnedState& s, const ReadToken<MesaMemory>& t,
                const OutGradToken<MesaMemory>& dy, OwnedState& ds,
                ReadGradToken<MesaMemory> dt) const {
    solver_.with_solution(s.G, s.slow.ridge, t.query, [&](const auto& x, const auto& vjp) {
      scratch<S, Dk>(signature_.dk, [&](auto& dx) {
        dx.setZero();
        detail::product_vjp(s.W, x, dy.output, ds.W, dx);
        vjp(dx, ds.G, ds.slow.ridge, dt.query);
      });
    });
  }

 private:
  // G is positive semidefinite, so its largest entry is on the diagonal, and no pivot is below λ.
  template <class G, class L> Violation ridge_violation(const G& g, const L& ridge) const {
    using Real = typename Eigen::NumTraits<S>::Real;
    const double rounding = static_cast<double>(signature_.dk) *
                            static_cast<double>(std::numeric_limits<Real>::epsilon());
    const double limit = rounding * static_cast<double>(g.diagonal().real().maxCoeff());
    if (static_cast<double>(ridge.real().minCoeff()) > limit) return {};
    const double pivot = solver_.smallest_pivot(g, ridge);
    if (detail::is_finite(pivot) && pivot > limit) return {};
    return {"the smallest pivot of G + diag(ridge)", pivot,
            "more than d_k units of rounding of the largest entry of G: take a larger ridge"};
  }

  Signature signature_;
  Solver solver_;
};

}  // namespace fw
