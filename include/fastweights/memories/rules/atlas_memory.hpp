#pragma once

#include <fastweights/core/state.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/math/newton_schulz.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/token_window.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// As KeyValueBetaDecayWindow, with the decay θ of the momentum.
template <int Dk, int Dv, int Window>
struct KeyValueMomentumWindow : KeyValueBetaDecayWindow<Dk, Dv, Window> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> beta;
    num<C> decay;
    num<C> momentum;         ///< θ
    vec<C, Window> weights;  ///< γ, the newest token first
    static constexpr auto names = fw::names("key", "value", "beta", "decay", "momentum", "weights");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::strength, Role::decay, Role::decay, Role::strength);
  };
  template <int NewDk> using with_keys_of = KeyValueMomentumWindow<NewDk, Dv, Window>;

  Write<Extents> write() const {
    return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {1, 1}, {1, 1}, {this->window, 1}};
  }
};

//| `AtlasMemory` | S = θ S − the same sum, W = α W + β NS(S), five Newton–Schulz steps | y = W
//|   q | (4 c + 6) d_v d_k and 20 m² n + 10 m³, m ≤ n the sizes |  | Behrouz et al. 2025,
//|   2505.23735
/// Atlas: the Omega rule with momentum, whose steps are made nearly orthogonal (as in the optimiser
/// Muon).
///
///     S_t = θ_t S_{t−1} − Σ_{i<c} γ_{t,i} (W_{t−1} k_{t−i} − v_{t−i}) k_{t−i}ᵀ
///     W_t = α_t W_{t−1} + β_t NS(S_t)     y_t = W_t q_t
///
/// NS is five Newton–Schulz steps (math/newton_schulz.hpp): all singular values of a step are about
/// 1, whatever the size of the errors. Tokens before the first count nothing.
///
/// Shapes: W and S d_v×d_k, the last keys d_k×c and values d_v×c, newest first; k and q d_k, v and
/// y d_v, β, α and θ 1, γ c. Cost per token: (4 c + 6) d_v d_k and 20 m² n + 10 m³ flops, with m
/// and n the smaller and the larger of d_v and d_k. Temporaries: 2 m (m + n) numbers. β and γ are
/// in [0, 2], α and θ in [0, 1]. W is bounded for α < 1, by about 1.2 β / (1 − α) in the spectral
/// norm; for α = 1 it grows by at most 1.2 β a token. S is bounded if W and θ < 1 are. A write from
/// S = 0 writes nothing, with gradient a^5 / 1e-7: the first errors should not be 0. Throws
/// std::invalid_argument when a size does not fit. Behrouz et al. 2025 (ATLAS), arXiv 2505.23735,
/// eq. 32–33, with a linear memory.
template <class S, int Dk = Dynamic, int Dv = Dk, int Window = Dynamic> class AtlasMemory {
 public:
  using Scalar = S;
  using Signature = KeyValueMomentumWindow<Dk, Dv, Window>;
  static constexpr std::string_view name = "AtlasMemory";

  template <class C> struct State {
    mat<C, Dv, Dk> W;
    mat<C, Dv, Dk> momentum;                ///< S
    TokenWindow<C, Dk, Dv, Window> window;  ///< the last c tokens
    static constexpr auto names = fw::names("W", "momentum", "window");
  };
  using OwnedState = State<Owned<S>>;

  explicit AtlasMemory(Sizes<Dk, Dv> sizes = {}, Index window = Window)
      : signature_{{{sizes.key_size, sizes.value_size}, window}} {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index dk = signature_.dk, dv = signature_.dv, c = signature_.window;
    return {{dv, dk}, {dv, dk}, {{dk, c}, {dv, c}}};
  }
  template <class T> auto cast() const {
    return AtlasMemory<T, Dk, Dv, Window>(signature_.sizes(), signature_.window);
  }

  void write(OwnedState& s, const WriteToken<AtlasMemory>& t) const {
    detail::push_column(s.window.keys, t.key);
    detail::push_column(s.window.values, t.value);
    detail::descend(s.W, s.window, t.momentum, S(1), t.weights, s.momentum);
    s.W *= t.decay;
    detail::NewtonSchulz::add(s.momentum, t.beta, s.W);
  }
  void read(const OwnedState& s, const ReadToken<AtlasMemory>& t, OutToken<AtlasMemory> y) const {
    detail::set_product_with_vector(y.output, s.W, t.query);
  }
  void write_vjp(const OwnedState& s, const WriteToken<AtlasMemory>& t, OwnedState& ds,
                 WriteGradToken<AtlasMemory> dt) const {
    detail::with_pushed(s.window, t, [&](const auto& window) {
      matrix_scratch<S>(s.W.rows(), s.W.cols(), [&](auto& momentum) {
        momentum = s.momentum;
        detail::descend(s.W, window, t.momentum, S(1), t.weights, momentum);
        detail::NewtonSchulz::add_vjp(momentum, t.beta, ds.W, ds.momentum, dt.beta);
      });
      detail::apply_decay_vjp(s.W, t.decay, ds.W, dt.decay);
      S dscale(0);  // of the constant 1
      detail::descend_vjp(s.W, window, t.momentum, S(1), t.weights, s.momentum, ds.momentum, ds.W,
                          ds.window, dt.momentum, dscale, dt.weights);
    });
    detail::push_column_vjp(ds.window.keys, dt.key);
    detail::push_column_vjp(ds.window.values, dt.value);
  }
  void read_vjp(const OwnedState& s, const ReadToken<AtlasMemory>& t,
                const OutGradToken<AtlasMemory>& dy, OwnedState& ds,
                ReadGradToken<AtlasMemory> dt) const {
    detail::product_vjp(s.W, t.query, dy.output, ds.W, dt.query);
  }

 private:
  Signature signature_;
};

}  // namespace fw
