#pragma once

#include <cmath>
#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/math/decay.hpp>
#include <fastweights/memories/rules/normaliser.hpp>
#include <string>

namespace fw::inline FASTWEIGHTS_ABI {

/// Options of RecursiveLeastSquares.
struct RlsOptions {
  double ridge = 1;      ///< δ: before any token P is I/δ. 1e-30 to 1e30
  double largest = 1e4;  ///< the trace of P grows to at most this times that of I/δ. At least 1
};

//| `RecursiveLeastSquares` | g = P k / (λ + kᵀP k), W += (v − W k) gᵀ, P = (P − g kᵀP) / λ,
//|   from P = I/δ: the RLS adaptive filter | y = W q | 6 d_v d_k + 9 d_k² |  | Plackett 1950;
//|   Haykin, Adaptive Filter Theory
/// Recursive least squares with a forgetting factor λ (`decay`), the RLS adaptive filter:
///
///     g_t = P_{t−1} k_t / (λ_t + k_tᵀ P_{t−1} k_t)     P_t = (P_{t−1} − g_t k_tᵀ P_{t−1}) / λ_t
///     W_t = W_{t−1} + (v_t − W_{t−1} k_t) g_tᵀ         y_t = W_t q_t
///
/// From the initial state, W = 0 and P = I/δ, W_t is a ridge regression: it minimises the sum of
/// ‖v_i − W k_i‖² over all tokens, each times the product of all λ after it, plus δ‖W‖² times the
/// product of all λ. MesaMemory with the ridge δ has the same outputs for λ = 1; it solves in every
/// read, and its ridge does not fade.
///
/// The state has a factor F of P = F Fᵀ (Potter's form of the update), so that rounding leaves P
/// symmetric and without negative eigenvalues. With u = Fᵀk / √λ and s = √(1 + ‖u‖²):
///
///     g = F u / (√λ s²)     F ← (F − F u uᵀ / (s (1 + s))) / √λ
///
/// Where no key points, P grows by 1/λ a token. So it grows no further than `largest` allows: with
/// L = largest · d_k/δ, λ is at least min(1, trace(P) / L). If some directions stay without keys, P
/// ends there with λ near 1, and the rule forgets less and less in the others as well: take shorter
/// keys. With an infinite `largest` it is the textbook's recursion, and P may overflow.
///
/// Shapes: W d_v×d_k, F d_k×d_k, k and q d_k, v and y d_v, λ 1. Cost per token: 6 d_v d_k + 9 d_k²
/// flops, for λ = 1 two d_k² less. λ is in [0, 1]. Stable for any key: a write leaves 1/s² of the
/// error. But with s above 10⁷ in float (10¹⁶ in double) rounding leaves nothing of P in the
/// direction of the key, and the rule learns nothing there any more. fw::write also gives the error
/// v − W k. Throws std::invalid_argument when a size or an option does not fit. Plackett 1950,
/// Biometrika 37; Haykin, Adaptive Filter Theory, RLS algorithm; Potter 1963, in Battin 1964,
/// Astronautical Guidance.
template <class S, int Dk = Dynamic, int Dv = Dk> class RecursiveLeastSquares {
 public:
  using Scalar = S;
  using Signature = KeyValueDecay<Dk, Dv>;
  static constexpr std::string_view name = "RecursiveLeastSquares";

  template <class C> struct State {
    mat<C, Dv, Dk> W;
    mat<C, Dk, Dk> F;  ///< P = F Fᵀ is the inverse of the decayed δI + Σ k kᵀ
    static constexpr auto names = fw::names("W", "F");
  };
  using OwnedState = State<Owned<S>>;

  explicit RecursiveLeastSquares(Sizes<Dk, Dv> sizes = {}, RlsOptions options = {})
      : signature_{{sizes.key_size, sizes.value_size}}, options_(options) {
    signature_.check(name);
    const auto refuse = [](std::string_view which, double given, std::string_view expected) {
      detail::throw_invalid(
          {name, ": ", which, " is ", detail::number_text(given), ", expected ", expected});
    };
    if (!(options.ridge >= 1e-30 && options.ridge <= 1e30))
      refuse("ridge", options.ridge, "1e-30 to 1e30");
    if (!(options.largest >= 1)) refuse("largest", options.largest, "at least 1");
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index dk = signature_.dk;
    return {{signature_.dv, dk}, {dk, dk}};
  }
  OwnedState initial_state() const {
    auto s = detail::zeros<OwnedState>(state_extents());
    s.F.diagonal().setConstant(S(1 / std::sqrt(options_.ridge)));
    return s;
  }
  template <class T> auto cast() const {
    return RecursiveLeastSquares<T, Dk, Dv>(signature_.sizes(), options_);
  }

  void write(OwnedState& s, const WriteToken<RecursiveLeastSquares>& t) const {
    scratch<S, Dv>(signature_.dv, [&](auto& error) { write(s, t, error); });
  }
  /// Also gives the error v − W k before the write: see fw::GivesErrors.
  template <class Error>
  void write(OwnedState& s, const WriteToken<RecursiveLeastSquares>& t, Error& error) const {
    with_gain(s, t, [&](const Kept& kept, const S& size, auto& u, auto& gain) {
      u *= -removed(size);
      detail::decay_and_add(s.F, kept.scale, gain, u);
      gain /= size;
      error.noalias() = s.W * t.key;
      error = t.value - error;
      s.W.noalias() += error * gain.transpose();
    });
  }
  void read(const OwnedState& s, const ReadToken<RecursiveLeastSquares>& t,
            OutToken<RecursiveLeastSquares> y) const {
    detail::set_product_with_vector(y.output, s.W, t.query);
  }
  void write_vjp(const OwnedState& s, const WriteToken<RecursiveLeastSquares>& t, OwnedState& ds,
                 WriteGradToken<RecursiveLeastSquares> dt) const {
    with_gain(s, t, [&](const Kept& kept, const S& size, auto& u, auto& gain) {
      scratch<S, Dk, 2>(signature_.dk, [&](auto& du, auto& dgain) {
        error_vjp(s, t, gain, size, ds, dt, dgain);
        S dsize = -detail::product_sum(gain, dgain) / (size * size);
        du.noalias() = ds.F * u;  // F ← scale F − removed gain uᵀ
        dsize -= detail::product_sum(gain, du) / ((S(1) + size) * (S(1) + size));
        dgain = dgain / size - removed(size) * du;
        du.noalias() = ds.F.transpose() * gain;
        du *= -removed(size);
        du.noalias() += kept.scale * (s.F.transpose() * dgain);  // gain = scale F u
        dsize -= detail::product_sum(u, du) / size;
        du = du / size + dsize * u;  // now of scale Fᵀ k, whose length gives the size
        dt.key.noalias() += kept.scale * (s.F * du);
        ds.F.noalias() += dgain * u.transpose();
        ds.F.noalias() += t.key * du.transpose();
        forget_vjp(s, kept, ds, dt);
      });
    });
  }
  void read_vjp(const OwnedState& s, const ReadToken<RecursiveLeastSquares>& t,
                const OutGradToken<RecursiveLeastSquares>& dy, OwnedState& ds,
                ReadGradToken<RecursiveLeastSquares> dt) const {
    detail::product_vjp(s.W, t.query, dy.output, ds.W, dt.query);
  }

 private:
  // The λ of a token, and what it is: the token's, the bound by the trace of P, or a constant.
  enum class Source { token, trace, constant };
  struct Kept {
    S scale;  // 1/√λ
    Source source;
  };

  Kept kept(const OwnedState& s, const S& decay) const {
    using std::sqrt;
    const auto make = [](const S& lambda, Source source) -> Kept {
      // An F of zeros, or a decay of 0 without a bound: λ counts as 1e-37.
      if (detail::real_part(lambda) < 1e-37) return {S(1 / std::sqrt(1e-37)), Source::constant};
      return {S(S(1) / sqrt(lambda)), source};
    };
    if (!(detail::real_part(decay) < 1)) return make(decay, Source::token);
    const S least = detail::product_sum(s.F, s.F) * S(inverse_limit());
    if (detail::real_part(least) >= 1) return make(S(1), Source::constant);
    if (detail::real_part(least) > detail::real_part(decay)) return make(least, Source::trace);
    return make(decay, Source::token);
  }
  double inverse_limit() const {
    return options_.ridge / (options_.largest * static_cast<double>(signature_.dk));
  }

  // Calls f(λ, s, u / s, F u / (√λ s)).
  template <class F>
  void with_gain(const OwnedState& s, const WriteToken<RecursiveLeastSquares>& t,
                 const F& f) const {
    const Kept k = kept(s, t.decay);
    scratch<S, Dk, 2>(signature_.dk, [&](auto& u, auto& gain) {
      u.noalias() = s.F.transpose() * t.key;
      u *= k.scale;
      const S size = size_of(u);
      u /= size;
      gain.noalias() = s.F * u;
      gain *= k.scale;
      f(k, size, u, gain);
    });
  }
  // √(1 + ‖u‖²), also where ‖u‖² overflows.
  template <class U> static S size_of(const U& u) {
    using std::abs, std::sqrt;
    auto largest = detail::real_part(S(1));
    for (Index i = 0; i < u.size(); ++i) {
      const auto entry = abs(detail::real_part(u[i]));
      if (entry > largest) largest = entry;
    }
    const S inverse = S(S(1) / S(largest));
    S sum = inverse * inverse;
    for (Index i = 0; i < u.size(); ++i) sum += (inverse * u[i]) * (inverse * u[i]);
    return S(largest) * S(sqrt(sum));
  }
  // s / (1 + s)
  static S removed(const S& size) { return S(S(1) / (S(1) + S(1) / size)); }

  // Of W ← W + (v − W k) gᵀ, where g is `gain` / size. Gives the gradient of g.
  template <class Gain>
  void error_vjp(const OwnedState& s, const WriteToken<RecursiveLeastSquares>& t, const Gain& gain,
                 const S& size, OwnedState& ds, WriteGradToken<RecursiveLeastSquares>& dt,
                 Gain& dgain) const {
    scratch<S, Dv, 2>(signature_.dv, [&](auto& error, auto& derror) {
      error.noalias() = s.W * t.key;
      error = t.value - error;
      dgain.noalias() = ds.W.transpose() * error;
      derror.noalias() = ds.W * gain;
      derror /= size;
      dt.value += derror;
      dt.key.noalias() -= s.W.transpose() * derror;
      ds.W.noalias() -= derror * t.key.transpose();
    });
  }
  // Of F / √λ: `ds.F` is the gradient of the quotient on entry and that of F on return.
  void forget_vjp(const OwnedState& s, const Kept& k, OwnedState& ds,
                  WriteGradToken<RecursiveLeastSquares>& dt) const {
    // The sum first: where it is 0, its product with a large factor is 0 too.
    const S dlambda = S(-0.5) * k.scale * (k.scale * (k.scale * detail::product_sum(s.F, ds.F)));
    ds.F *= k.scale;
    if (k.source == Source::token) dt.decay += dlambda;
    if (k.source == Source::trace) ds.F += (S(2 * inverse_limit()) * dlambda) * s.F;
  }

  Signature signature_;
  RlsOptions options_;
};

}  // namespace fw
