#pragma once

#include <fastweights/core/errors.hpp>
#include <fastweights/core/member_storage.hpp>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/math/standardise.hpp>
#include <string>

/// \file
/// Losses of a model at test time: policies of TestTimeTraining and TitansLearner. An
/// objective turns the model's answer z for a key into the gradient of its loss, and the answer for
/// a query into the output. It has slow weights, or an empty record of them.

namespace fw::inline FASTWEIGHTS_ABI {

/// ½‖z − v‖²; the output is z.
struct SquaredObjective {
  template <class C, int D> struct Slow { static constexpr auto names = fw::names(); };
  template <int D> Slow<Extents, D> extents(Index) const { return {}; }
  /// Sets the slow weights to what they are before training.
  template <class Slow> static void start(Slow&) {}
  void check(std::string_view, Index, Index) const {}

  /// Replaces z by the gradient of the loss.
  template <class Slow, class T, class Z> void gradient(const Slow&, const T& t, Z& z) const {
    z -= t.value;
  }
  /// Replaces the gradient of `gradient` by that of z. Adds to the others.
  template <class Slow, class T, class Z, class D, class DT>
  void gradient_vjp(const Slow&, const T&, const Z&, D& d, Slow&, DT& dt) const {
    dt.value -= d;
  }
  /// Replaces z by the output.
  template <class Slow, class Q, class Z> void output(const Slow&, const Q&, Z&) const {}
  /// Replaces the gradient of the output by that of z. Adds to the others.
  template <class Slow, class Q, class Z, class D, class DQ>
  void output_vjp(const Slow&, const Q&, const Z&, D&, Slow&, DQ&) const {}
};

/// Term added to the layer norm of z: the query (as in TTT), or z (as in
/// flash-linear-attention).
enum class Residual {
  query,  ///< q
  answer  ///< z
};

/// The gradient through a layer norm: exact, or as flash-linear-attention codes it for Titans.
enum class NormGradient {
  exact,      ///< the derivative
  fla_titans  ///< as flash-linear-attention codes it, see NormalisedObjective
};

/// ½‖LN(z) − (v − k)‖², LN(z) = w ⊙ ẑ + b, ẑ = (z − mean(z)) / √(var(z) + ε). The output is
/// LN(z) + q, or LN(z) + z. w and b are slow weights; w starts at 1.
///
/// With g = w ⊙ (LN(z) − v + k), s = 1/√(var(z) + ε) and m = mean(g) + ẑ mean(g ⊙ ẑ), the exact
/// gradient is s (g − m). The other has d g − s m, which is missing parentheses.
template <Residual residual = Residual::query, NormGradient form = NormGradient::exact>
struct NormalisedObjective {
  double epsilon = 1e-6;

  template <class C, int D> struct Slow {
    vec<C, D> weight, bias;  ///< w and b of LN
    static constexpr auto names = fw::names("weight", "bias");
  };
  template <int D> Slow<Extents, D> extents(Index d) const { return {{d, 1}, {d, 1}}; }
  /// Sets the slow weights to what they are before training.
  template <class Slow> static void start(Slow& slow) { slow.weight.setOnes(); }
  void check(std::string_view rule, Index dk, Index dv) const {
    detail::check_above_zero(rule, "epsilon", epsilon);
    if (dk != dv)
      detail::throw_invalid({rule, ": d_v is ", std::to_string(dv),
                             ", expected d_k = ", std::to_string(dk), ", as the target is v − k"});
  }

  /// Replaces z by the gradient of the loss.
  template <class Slow, class T, class Z> void gradient(const Slow& slow, const T& t, Z& z) const {
    using S = typename Z::Scalar;
    scratch<S, Z::RowsAtCompileTime>(z.size(), [&](auto& x) {
      x = z;
      const S s = detail::standardise(x, S(epsilon));
      error(slow, t, x, z);
      z.array() *= slow.weight.array();
      const S m = detail::mean_of(z), mx = detail::mean_of(z.cwiseProduct(x));
      z.array() = outer(s, z) * z.array() - s * (m + mx * x.array());
    });
  }
  /// Replaces the gradient of `gradient` by that of z. Adds to the others.
  template <class Slow, class T, class Z, class D, class DT>
  void gradient_vjp(const Slow& slow, const T& t, const Z& z, D& d, Slow& dslow, DT& dt) const {
    using S = typename D::Scalar;
    scratch<S, D::RowsAtCompileTime, 4>(z.size(), [&](auto& x, auto& e, auto& g, auto& dg) {
      x = z;
      const S s = detail::standardise(x, S(epsilon));
      error(slow, t, x, e);
      g = slow.weight.cwiseProduct(e);
      const S m = detail::mean_of(g), mx = detail::mean_of(g.cwiseProduct(x)),
              dm = detail::mean_of(d), dmx = detail::mean_of(d.cwiseProduct(x));
      S ds = -size(z) * (dm * m + dmx * mx);  // the gradient of s
      if constexpr (form == NormGradient::exact) ds += d.cwiseProduct(g).sum();
      dg.array() = outer(s, z) * d.array() - s * (dm + dmx * x.array());
      d.array() = -s * (mx * d.array() + dmx * g.array());  // the gradient of ẑ
      dslow.weight.array() += dg.array() * (e + slow.weight.cwiseProduct(x)).array();
      dg.array() *= slow.weight.array();
      dslow.bias += dg;
      dt.key += dg;
      dt.value -= dg;
      d.array() += slow.weight.array() * dg.array();
      detail::standardise_vjp(x, s, d);
      d -= (s * s * ds / size(z)) * x;
    });
  }
  /// Replaces z by the output.
  template <class Slow, class Q, class Z>
  void output(const Slow& slow, const Q& query, Z& z) const {
    using S = typename Z::Scalar;
    scratch<S, Z::RowsAtCompileTime>(z.size(), [&](auto& x) {
      x = z;
      detail::standardise(x, S(epsilon));
      if constexpr (residual == Residual::query) z = query;
      z += slow.weight.cwiseProduct(x) + slow.bias;
    });
  }
  /// Replaces the gradient of the output by that of z. Adds to the others.
  template <class Slow, class Q, class Z, class D, class DQ>
  void output_vjp(const Slow& slow, const Q&, const Z& z, D& d, Slow& dslow, DQ& dquery) const {
    using S = typename D::Scalar;
    scratch<S, D::RowsAtCompileTime, 2>(z.size(), [&](auto& x, auto& dx) {
      x = z;
      const S s = detail::standardise(x, S(epsilon));
      dslow.bias += d;
      dslow.weight += d.cwiseProduct(x);
      dx = slow.weight.cwiseProduct(d);
      detail::standardise_vjp(x, s, dx);
      if constexpr (residual == Residual::query) {
        dquery += d;
        d = dx;
      } else {
        d += dx;
      }
    });
  }

 private:
  template <class X> static auto size(const X& x) {
    return typename X::Scalar(static_cast<double>(x.size()));
  }
  // The factor of g.
  template <class S, class Z> static S outer(const S& s, const Z& z) {
    return form == NormGradient::exact ? s : size(z);
  }
  // e = LN(z) − (v − k)
  template <class Slow, class T, class X, class E>
  static void error(const Slow& slow, const T& t, const X& x, E& e) {
    e = slow.weight.cwiseProduct(x) + slow.bias - t.value + t.key;
  }
};

namespace detail {

/// y, the output of a model for a query, and its gradients. Adds to all gradients.
template <class Model, class Objective, class W, class Slow, class Q, class Y>
void answer(const Model& model, const Objective& objective, const W& w, const Slow& slow,
            const Q& query, Y& y) {
  model.value(w, query, y);
  objective.output(slow, query, y);
}
template <int Dv, class Model, class Objective, class W, class Slow, class Q, class DY, class DQ>
void answer_vjp(const Model& model, const Objective& objective, const W& w, const Slow& slow,
                const Q& query, const DY& dy, W& dw, Slow& dslow, DQ& dquery) {
  scratch<typename DY::Scalar, Dv, 2>(dy.size(), [&](auto& z, auto& dz) {
    model.value(w, query, z);
    dz = dy;
    objective.output_vjp(slow, query, z, dz, dslow, dquery);
    model.value_vjp(w, query, dz, dw, dquery);
  });
}

}  // namespace detail

}  // namespace fw
