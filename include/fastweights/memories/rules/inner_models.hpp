#pragma once

#include <cmath>
#include <fastweights/core/member_storage.hpp>
#include <fastweights/core/scratch.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/memories/rules/mini_batch.hpp>
#include <fastweights/memories/rules/normaliser.hpp>

/// \file
/// Models that a memory trains at test time: the policies LinearModel and MlpModel of
/// TestTimeTraining and TitansLearner. A model has a record of weights w, and these functions of an
/// input x and a loss:
///
/// - `value`: z = f(x; w), and `value_vjp`
/// - `descend`: to += scale ∇_w loss(f(x; w)), where `to` has the members of w. `loss(z)`
///   replaces z by the gradient of the loss with respect to z.
/// - `along`: Σ ∇_w loss ∘ direction
/// - `descend_vjp`: the gradients of `descend`, second derivatives of the loss. `loss_vjp(z, d)`
///   turns the gradient d of loss(z) into that of z. `dto`, the gradient of `to`, may be `dw`.
/// - `batch`: the answers for queries of tokens of one mini-batch, whose steps go to `steps`.
///   `loss(t, z)` replaces z by η_t times the gradient of token t's loss. `batch_rows` are the rows
///   of its buffers.

namespace fw::inline FASTWEIGHTS_ABI {

/// W x + b, or W x.
template <class C, int Rows, int Cols, bool Bias> struct AffineWeights {
  mat<C, Rows, Cols> W;  ///< the weight, Rows×Cols
  vec<C, Rows> b;        ///< the bias, `Rows` entries
  static constexpr auto names = fw::names("W", "b");
};
/// W x without a bias.
template <class C, int Rows, int Cols> struct AffineWeights<C, Rows, Cols, false> {
  mat<C, Rows, Cols> W;  ///< the weight, Rows×Cols
  static constexpr auto names = fw::names("W");
};

namespace detail {

template <int Rows, int Cols, bool Bias>
AffineWeights<Extents, Rows, Cols, Bias> affine_extents(Index rows, Index cols) {
  if constexpr (Bias)
    return {{rows, cols}, {rows, 1}};
  else
    return {{rows, cols}};
}

template <class L> inline constexpr int rows_of = decltype(L::W)::RowsAtCompileTime;

template <class L, class X, class Y> void affine(const L& layer, const X& x, Y& y) {
  y.noalias() = layer.W * x;
  if constexpr (requires { layer.b; }) y += layer.b;
}
// The gradient of W x + b with respect to W and b is this outer product with dy.
template <class L, class Dy, class X> void add_outer(L& layer, const Dy& dy, const X& x) {
  layer.W.noalias() += dy * x.transpose();
  if constexpr (requires { layer.b; }) layer.b += dy;
}
template <class L, class X, class Dy, class DX>
void affine_vjp(const L& layer, const X& x, const Dy& dy, L& dlayer, DX& dx) {
  add_outer(dlayer, dy, x);
  dx.noalias() += layer.W.transpose() * dy;
}

}  // namespace detail

/// f(x) = W x + b. With `Bias` false, W x.
template <bool Bias = true> struct LinearModel {
  /// True if weights of zero have no gradient, so that a state of zeros never learns.
  static constexpr bool zero_stays_zero = false;
  /// The record of W and b.
  template <class C, int Dk, int Dv> using Weights = AffineWeights<C, Dv, Dk, Bias>;
  template <int Dk, int Dv> Weights<Extents, Dk, Dv> extents(Index dk, Index dv) const {
    return detail::affine_extents<Dv, Dk, Bias>(dv, dk);
  }
  void check(std::string_view) const {}

  /// z = f(x; w).
  template <class W, class X, class Z> void value(const W& w, const X& x, Z& z) const {
    detail::affine(w, x, z);
  }
  /// Adds to the gradients of w and x, given the gradient of z.
  template <class W, class X, class Dz, class DX>
  void value_vjp(const W& w, const X& x, const Dz& dz, W& dw, DX& dx) const {
    detail::affine_vjp(w, x, dz, dw, dx);
  }

  /// to += scale ∇_w loss(f(x; w)).
  template <class W, class X, class S, class Loss>
  void descend(const W& w, const X& x, const S& scale, const Loss& loss, W& to) const {
    scratch<S, detail::rows_of<W>>(w.W.rows(), [&](auto& n) {
      detail::affine(w, x, n);
      loss(n);
      n *= scale;
      detail::add_outer(to, n, x);
    });
  }
  /// See the description of the file.
  static Index batch_rows(Index dk, Index dv) { return dk + dv; }
  template <class W, class S, class X, class Y, class Loss>
  void batch(const W& start, W& steps, detail::MiniBatch<S>& tokens, const X& keys,
             const X& queries, const Loss& loss, Y& y) const {
    auto gradients = tokens.matrix(y.rows());
    detail::batch_affine(start, keys, gradients);
    for (Index t = 0; t < tokens.size(); ++t) loss(t, gradients.col(t));
    detail::batch_affine(start, queries, y);
    detail::subtract_steps(tokens, steps, keys, gradients, queries, tokens.matrix(tokens.size()),
                           tokens.matrix(keys.rows()), y);
    detail::advance_steps(tokens, steps, keys, gradients);
  }
  /// Σ ∇_w loss ∘ direction.
  template <class W, class X, class Loss>
  auto along(const W& w, const X& x, const Loss& loss, const W& direction) const {
    typename X::Scalar sum(0);
    scratch<typename X::Scalar, detail::rows_of<W>, 2>(w.W.rows(), [&](auto& n, auto& d) {
      detail::affine(w, x, n);
      loss(n);
      detail::affine(direction, x, d);
      sum = n.cwiseProduct(d).sum();
    });
    return sum;
  }
  /// Adds to the gradients of w, x and scale, given that of `to`.
  template <class W, class X, class S, class Loss, class LossVjp, class DX>
  void descend_vjp(const W& w, const X& x, const S& scale, const Loss& loss,
                   const LossVjp& loss_vjp, const W& dto, W& dw, DX& dx, S& dscale) const {
    scratch<S, detail::rows_of<W>, 3>(w.W.rows(), [&](auto& z, auto& n, auto& d) {
      detail::affine(w, x, z);
      n = z;
      loss(n);
      detail::affine(dto, x, d);  // the gradient of scale · n
      dscale += n.cwiseProduct(d).sum();
      n *= scale;
      dx.noalias() += dto.W.transpose() * n;
      d *= scale;
      loss_vjp(z, d);
      detail::affine_vjp(w, x, d, dw, dx);
    });
  }
};

namespace detail {

// y = φ(x) of matrices; vectorised if the function has a form for arrays.
template <class Activation, class X, class Y> void inner_values(const X& x, Y& y) {
  for (Index j = 0; j < x.cols(); ++j)
    if constexpr (requires { Activation::values(x.col(j).array()); })
      y.col(j).array() = Activation::values(x.col(j).array());
    else
      y.col(j) = x.col(j).unaryExpr([](const auto& each) { return Activation::value(each); });
}
// y = y ⊙ φ'(x) of matrices, with the derivative in the inner gradient.
template <class Activation, class X, class Y> void multiply_by_inner_slopes(const X& x, Y& y) {
  for (Index j = 0; j < x.cols(); ++j)
    if constexpr (requires { Activation::slopes(x.col(j).array()); })
      y.col(j).array() *= Activation::slopes(x.col(j).array());
    else
      y.col(j).array() *=
          x.col(j).array().unaryExpr([](const auto& each) { return Activation::slope(each); });
}

}  // namespace detail

/// x σ(x), with two derivatives. `slope` is the derivative in the inner gradient.
struct InnerSilu {
  /// The function.
  template <class S> static S value(const S& x) { return x * Sigmoid().value(x); }
  /// The derivative in the gradients of a read.
  template <class S> static S derivative(const S& x) { return slope(x); }
  /// The derivative in the inner gradient.
  template <class S> static S slope(const S& x) {
    const S y = Sigmoid().value(x);
    return y * (S(1) + x * (S(1) - y));
  }
  /// The derivative of `slope`.
  template <class S> static S slope_derivative(const S& x) {
    const S y = Sigmoid().value(x);
    return y * (S(1) - y) * (S(2) + x * (S(1) - S(2) * y));
  }
};

/// The tanh form of the GELU, as in the code of TTT: its inner gradient has a derivative with
/// rounded constants, which weights of that code were trained with.
struct InnerGelu {
  /// The function.
  template <class S> static S value(const S& x) {
    return S(0.5) * x * (S(1) + tanh_of(x, root, cube));
  }
  /// The derivative in the gradients of a read.
  template <class S> static S derivative(const S& x) { return slope(x, root, 3 * root * cube); }
  /// The derivative in the inner gradient.
  template <class S> static S slope(const S& x) { return slope(x, rounded_root, rounded_product); }
  /// The derivative of `slope`.
  template <class S> static S slope_derivative(const S& x) {
    const S y = tanh_of(x, rounded_root, cube), rest = S(1) - y * y;
    const S inner = S(rounded_root) + S(rounded_product) * x * x;
    const S dy = rest * S(rounded_root) * (S(1) + S(3 * cube) * x * x);
    return S(0.5) * (rest * inner + dy) + x * (rest * S(rounded_product) * x - y * dy * inner);
  }

  /// The function of a real array.
  template <class A> static auto values(const A& x) {
    using S = typename A::Scalar;
    return S(0.5) * x * (S(1) + (S(root) * x * (S(1) + S(cube) * x.square())).tanh());
  }
  /// `slope` of a real array.
  template <class A> static auto slopes(const A& x) {
    using S = typename A::Scalar;
    const auto y = (S(rounded_root) * x * (S(1) + S(cube) * x.square())).tanh();
    const auto inner = S(rounded_root) + S(rounded_product) * x.square();
    return S(0.5) * (x * (S(1) - y.square()) * inner + S(1) + y);
  }

 private:
  // √(2/π), the factor of x³, and what the code has for the first and for three times their product
  static constexpr double root = 0.79788456080286535588, cube = 0.044715, rounded_root = 0.79788456,
                          rounded_product = 0.1070322243;
  template <class S> static S tanh_of(const S& x, double r, double c) {
    using std::tanh;
    return tanh(S(S(r) * x * (S(1) + S(c) * x * x)));
  }
  template <class S> static S slope(const S& x, double r, double product) {
    const S y = tanh_of(x, r, cube);
    return S(0.5) * (x * (S(1) - y * y) * (S(r) + S(product) * x * x) + S(1) + y);
  }
};

/// The weights of an MlpModel.
template <class C, int Dk, int Hidden, int Dv, bool Bias> struct MlpWeights {
  /// W_1 and b_1, h×d_k.
  AffineWeights<C, Hidden, Dk, Bias> first;
  /// W_2 and b_2, d_v×h.
  AffineWeights<C, Dv, Hidden, Bias> second;
  static constexpr auto names = fw::names("first", "second");
};

/// f(x) = W_2 φ(W_1 x + b_1) + b_2, with h hidden units. With `Bias` false, without b_1 and b_2.
template <class Activation, int Hidden = Dynamic, bool Bias = true> struct MlpModel {
  Index hidden = Hidden;  ///< h

  /// True if weights of zero have no gradient, so that a state of zeros never learns.
  static constexpr bool zero_stays_zero = true;
  /// The record of both layers.
  template <class C, int Dk, int Dv> using Weights = MlpWeights<C, Dk, Hidden, Dv, Bias>;
  template <int Dk, int Dv> Weights<Extents, Dk, Dv> extents(Index dk, Index dv) const {
    return {detail::affine_extents<Hidden, Dk, Bias>(hidden, dk),
            detail::affine_extents<Dv, Hidden, Bias>(dv, hidden)};
  }
  void check(std::string_view rule) const {
    detail::check_size<Hidden>(rule, "the number of hidden units", hidden);
  }

  /// z = f(x; w).
  template <class W, class X, class Z> void value(const W& w, const X& x, Z& z) const {
    scratch<typename X::Scalar, Hidden>(hidden, [&](auto& h) {
      detail::affine(w.first, x, h);
      activate(h, h);
      detail::affine(w.second, h, z);
    });
  }
  /// Adds to the gradients of w and x, given the gradient of z.
  template <class W, class X, class Dz, class DX>
  void value_vjp(const W& w, const X& x, const Dz& dz, W& dw, DX& dx) const {
    scratch<typename X::Scalar, Hidden, 3>(hidden, [&](auto& h, auto& a, auto& dh) {
      detail::affine(w.first, x, h);
      activate(h, a);
      dh.setZero();
      detail::affine_vjp(w.second, a, dz, dw.second, dh);
      for (Index i = 0; i < hidden; ++i) dh[i] *= Activation::derivative(h[i]);
      detail::affine_vjp(w.first, x, dh, dw.first, dx);
    });
  }

  /// to += scale ∇_w loss(f(x; w)).
  template <class W, class X, class S, class Loss>
  void descend(const W& w, const X& x, const S& scale, const Loss& loss, W& to) const {
    with_gradient(w, x, loss, [&](auto& a, auto& n, auto& p) {
      n *= scale;
      p *= scale;
      detail::add_outer(to.second, n, a);
      detail::add_outer(to.first, p, x);
    });
  }
  /// See the description of the file.
  Index batch_rows(Index dk, Index dv) const { return dv + 3 * hidden + std::max(dk, hidden); }
  template <class W, class S, class X, class Y, class Loss>
  void batch(const W& start, W& steps, detail::MiniBatch<S>& tokens, const X& keys,
             const X& queries, const Loss& loss, Y& y) const {
    auto h = tokens.matrix(hidden), a = tokens.matrix(hidden), p = tokens.matrix(hidden),
         n = tokens.matrix(y.rows()), sums = tokens.matrix(tokens.size());
    auto scaled = tokens.matrix(std::max(keys.rows(), hidden));
    const auto scaled_of = [&](Index rows) {
      return typename detail::MiniBatch<S>::Matrix(scaled.data(), rows, tokens.size());
    };
    detail::batch_affine(start.first, keys, h);
    detail::inner_values<Activation>(h, a);
    detail::batch_affine(start.second, a, n);
    for (Index t = 0; t < tokens.size(); ++t) loss(t, n.col(t));
    detail::set_product(p, start.second.W.transpose(), n);
    detail::multiply_by_inner_slopes<Activation>(h, p);
    detail::batch_affine(start.first, queries, h);
    detail::subtract_steps(tokens, steps.first, keys, p, queries, sums, scaled_of(keys.rows()), h);
    detail::inner_values<Activation>(h, h);
    detail::batch_affine(start.second, h, y);
    detail::subtract_steps(tokens, steps.second, a, n, h, sums, scaled_of(hidden), y);
    detail::advance_steps(tokens, steps.first, keys, p);
    detail::advance_steps(tokens, steps.second, a, n);
  }
  /// Σ ∇_w loss ∘ direction.
  template <class W, class X, class Loss>
  auto along(const W& w, const X& x, const Loss& loss, const W& direction) const {
    typename X::Scalar sum(0);
    with_gradient(w, x, loss, [&](const auto& a, const auto& n, const auto& p) {
      scratch<typename X::Scalar, Hidden>(hidden, [&](auto& d) {
        detail::affine(direction.first, x, d);
        sum = p.cwiseProduct(d).sum();
      });
      scratch<typename X::Scalar, detail::rows_of<decltype(W::second)>>(n.size(), [&](auto& d) {
        detail::affine(direction.second, a, d);
        sum += n.cwiseProduct(d).sum();
      });
    });
    return sum;
  }
  /// With r = W_2ᵀ n and p = r ⊙ φ'(h), the gradients of the two layers' outputs are n and p.
  template <class W, class X, class S, class Loss, class LossVjp, class DX>
  void descend_vjp(const W& w, const X& x, const S& scale, const Loss& loss,
                   const LossVjp& loss_vjp, const W& dto, W& dw, DX& dx, S& dscale) const {
    scratch<S, Hidden, 6>(hidden, [&](auto& h, auto& a, auto& r, auto& dp, auto& da, auto& dh) {
      scratch<S, detail::rows_of<decltype(W::second)>, 3>(
          w.second.W.rows(), [&](auto& z, auto& n, auto& dn) {
            detail::affine(w.first, x, h);
            activate(h, a);
            detail::affine(w.second, a, z);
            n = z;
            loss(n);
            r.noalias() = w.second.W.transpose() * n;
            detail::affine(dto.second, a, dn);  // the gradient of scale · n
            detail::affine(dto.first, x, dp);   // the gradient of scale · p
            da.noalias() = dto.second.W.transpose() * n;
            dscale += n.cwiseProduct(dn).sum();
            for (Index i = 0; i < hidden; ++i) {
              const S slope = Activation::slope(h[i]);
              dscale += r[i] * slope * dp[i];
              dp[i] *= scale;
              dh[i] = dp[i] * r[i] * Activation::slope_derivative(h[i]);
              dp[i] *= slope;  // the gradient of r
              r[i] *= scale * slope;
            }
            dx.noalias() += dto.first.W.transpose() * r;
            da *= scale;
            dn *= scale;
            dn.noalias() += w.second.W * dp;
            dw.second.W.noalias() += n * dp.transpose();
            loss_vjp(z, dn);
            detail::affine_vjp(w.second, a, dn, dw.second, da);
            for (Index i = 0; i < hidden; ++i) dh[i] += da[i] * Activation::derivative(h[i]);
            detail::affine_vjp(w.first, x, dh, dw.first, dx);
          });
    });
  }

 private:
  template <class H, class A> static void activate(const H& h, A& a) {
    for (Index i = 0; i < h.size(); ++i) a[i] = Activation::value(h[i]);
  }
  // Calls f(φ(h), n, p), with n and p as in descend_vjp.
  template <class W, class X, class Loss, class F>
  void with_gradient(const W& w, const X& x, const Loss& loss, const F& f) const {
    using S = typename X::Scalar;
    scratch<S, Hidden, 3>(hidden, [&](auto& h, auto& a, auto& p) {
      scratch<S, detail::rows_of<decltype(W::second)>>(w.second.W.rows(), [&](auto& n) {
        detail::affine(w.first, x, h);
        activate(h, a);
        detail::affine(w.second, a, n);
        loss(n);
        p.noalias() = w.second.W.transpose() * n;
        for (Index i = 0; i < hidden; ++i) p[i] *= Activation::slope(h[i]);
        f(a, n, p);
      });
    });
  }
};

}  // namespace fw
