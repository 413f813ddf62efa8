#pragma once

#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/token_window.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `OmegaMemory` | W = α W − β Σ γ_i (W k_i − v_i) k_iᵀ over the last c tokens | y = W q | (4 c
//|   + 3) d_v d_k |  | Behrouz et al. 2025, 2505.23735
/// The Omega rule: a gradient step on the errors of the last c tokens, and not of the last one
/// alone.
///
///     W_t = α_t W_{t−1} − β_t Σ_{i<c} γ_{t,i} (W_{t−1} k_{t−i} − v_{t−i}) k_{t−i}ᵀ
///     y_t = W_t q_t
///
/// Tokens before the first count nothing. With c = 1 and γ = 1 it is Comba with p = k.
///
/// Shapes: W d_v×d_k, the last keys d_k×c and values d_v×c, newest first; k and q d_k, v and y d_v,
/// β and α 1, γ c. Cost per token: (4 c + 3) d_v d_k flops. β and γ are in [0, 2], α in [0, 1].
/// Stable for β Σ_i γ_i ‖k_{t−i}‖² ≤ 1 + α. A token knows only its own key, so violation() takes it
/// for the largest: normalise the keys. Throws std::invalid_argument when a size does not fit.
/// Behrouz et al. 2025 (ATLAS), arXiv 2505.23735, eq. 9–10, with a linear memory.
template <class S, int Dk = Dynamic, int Dv = Dk, int Window = Dynamic> class OmegaMemory {
 public:
  using Scalar = S;
  using Signature = KeyValueBetaDecayWindow<Dk, Dv, Window>;
  static constexpr std::string_view name = "OmegaMemory";

  template <class C> struct State {
    mat<C, Dv, Dk> W;
    TokenWindow<C, Dk, Dv, Window> window;  ///< the last c tokens
    static constexpr auto names = fw::names("W", "window");
  };
  using OwnedState = State<Owned<S>>;

  explicit OmegaMemory(Sizes<Dk, Dv> sizes = {}, Index window = Window)
      : signature_{{sizes.key_size, sizes.value_size}, window} {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index dk = signature_.dk, dv = signature_.dv, c = signature_.window;
    return {{dv, dk}, {{dk, c}, {dv, c}}};
  }
  template <class T> auto cast() const {
    return OmegaMemory<T, Dk, Dv, Window>(signature_.sizes(), signature_.window);
  }

  void write(OwnedState& s, const WriteToken<OmegaMemory>& t) const {
    detail::push_column(s.window.keys, t.key);
    detail::push_column(s.window.values, t.value);
    detail::descend(s.W, s.window, t.decay, t.beta, t.weights, s.W);
  }
  Violation violation(const WriteToken<OmegaMemory>& t) const {
    return undecayed_delta_violation(S(t.beta * t.weights.sum()), t.key, t.decay);
  }
  void read(const OwnedState& s, const ReadToken<OmegaMemory>& t, OutToken<OmegaMemory> y) const {
    detail::set_product_with_vector(y.output, s.W, t.query);
  }
  void write_vjp(const OwnedState& s, const WriteToken<OmegaMemory>& t, OwnedState& ds,
                 WriteGradToken<OmegaMemory> dt) const {
    detail::with_pushed(s.window, t, [&](const auto& window) {
      detail::descend_vjp(s.W, window, t.decay, t.beta, t.weights, s.W, ds.W, ds.W, ds.window,
                          dt.decay, dt.beta, dt.weights);
    });
    detail::push_column_vjp(ds.window.keys, dt.key);
    detail::push_column_vjp(ds.window.values, dt.value);
  }
  void read_vjp(const OwnedState& s, const ReadToken<OmegaMemory>& t,
                const OutGradToken<OmegaMemory>& dy, OwnedState& ds,
                ReadGradToken<OmegaMemory> dt) const {
    detail::product_vjp(s.W, t.query, dy.output, ds.W, dt.query);
  }

 private:
  Signature signature_;
};

}  // namespace fw
