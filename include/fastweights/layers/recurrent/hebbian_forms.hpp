#pragma once

#include <algorithm>
#include <cmath>
#include <fastweights/core/products.hpp>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/views.hpp>
#include <fastweights/kernels/simd/outer_product.hpp>
#include <vector>

/// \file
/// Two forms of fast weights that a sequence of hidden states h_0, h_1, … writes into and reads
/// while it comes into being, for FastWeightsRnn:
///
///     A_{t+1} = λ A_t + η h_t h_tᵀ
///     y = A_t x = λᵗ A_0 x + η Σ_{i<t} λ^{t−1−i} h_i (h_i·x)
///
/// HebbianMatrix keeps A, HebbianAttention the hidden states, which stand in the layer's trace
/// anyway. Either does, as the layer calls them:
///
///     start(A, in, train)                 before the first token; A is the state's matrix, A_0
///     read(A, in, t, x, y)                y += A_t x, any number of times a token
///     write(A, in, t)                     after the reads of token t
///     finish(A, in)                       A becomes A_T
///     start_backward(in)                  of a train pass, from its last token to its first:
///     write_vjp(in, t, out)               adds to the gradient of h_t
///     read_vjp(in, t, x, dy, out, dx)     dx = A_tᵀ dy; the part of h_0 … h_{t−1} in A_t, now
///                                         or in their write_vjp

namespace fw::detail {

/// λ and η, whether their gradients are asked for, and the columns of which column t is what token
/// t writes.
template <class S> struct HebbianWrites {
  S decay, rate;
  bool learns_rates;
  Eigen::Map<const Eigen::Matrix<S, Dynamic, Dynamic>> hidden;
};

/// Their gradients.
template <class S> struct HebbianGradients {
  S decay, rate;
  Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>> hidden;
};

/// The fast weights of one sequence in a state.
template <class S> using FastWeights = Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>>;

/// Whether nothing has been written to A; a NaN counts as something.
template <class Matrix> bool is_zero(const Matrix& A) { return A.cwiseAbs().sum() == 0; }

/// No fast weights: nothing is written and nothing read.
struct NoFastWeights {
  template <class... Args> void start(const Args&...) {}
  template <class... Args> void read(const Args&...) {}
  template <class... Args> void write(const Args&...) {}
  template <class... Args> void finish(const Args&...) {}
  template <class... Args> void start_backward(const Args&...) {}
  template <class... Args> void write_vjp(const Args&...) {}
  template <class... Args> void read_vjp(const Args&...) {}
};

/// The matrix form. A train pass keeps a matrix every √T tokens, the backward pass makes those in
/// between again. Cost: 3 R² flops a write and 2 R² a read.
template <class S> class HebbianMatrix {
 public:
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  using Weights = FastWeights<S>;
  using Writes = HebbianWrites<S>;

  void start(const Weights&, const Writes& in, bool train) {
    keeps_ = train;
    if (!keeps_) return;
    const Index steps = in.hidden.cols();
    interval_ = std::max<Index>(1, static_cast<Index>(std::sqrt(static_cast<double>(steps))));
    kept_.resize(static_cast<std::size_t>((steps + interval_ - 1) / interval_));
    between_.resize(static_cast<std::size_t>(interval_));
  }
  template <class X, class Y> void read(const Weights& A, const Writes&, Index, const X& x, Y& y) {
    y.noalias() += A * x;
  }
  void write(Weights& A, const Writes& in, Index t) {
    if (keeps_ && t % interval_ == 0) kept_[chunk(t)] = A;
    write(A.data(), A.data(), in, t);
  }
  void finish(Weights&, const Writes&) {}

  void start_backward(const Writes& in) {
    const Index r = in.hidden.rows();
    dA_.setZero(r, r);
    for (auto* each : {&asked_, &answered_, &product_}) each->resize(r);
    pending_ = false;
    fade_ = S(1);
  }
  void write_vjp(const Writes& in, Index t, HebbianGradients<S>& out) {
    const bool last = t % interval_ == interval_ - 1 || t + 1 == in.hidden.cols();
    if (last) make_between(in, t);
    if (!pending_) return;  // nobody has read it
    const auto h = in.hidden.col(t);
    add_outer_product(dA_.data(), fade_, answered_.data(), asked_.data(), h.size(), h.size(),
                      h.data(), product_.data());
    if (in.learns_rates) {
      out.rate += product_.cwiseProduct(h).sum();
      out.decay += dA_.cwiseProduct(before(t)).sum();
    }
    product_.noalias() += dA_.transpose() * h;
    out.hidden.col(t) += in.rate * product_;
    pending_ = false;
    fade_ = in.decay;
  }
  template <class X, class Dy, class Dx>
  void read_vjp(const Writes&, Index t, const X& x, const Dy& dy, HebbianGradients<S>&, Dx& dx) {
    if (pending_) {
      add_outer_product(dA_.data(), dA_.data(), fade_, answered_.data(), asked_.data(), x.size(),
                        x.size());
      fade_ = S(1);
    }
    asked_ = x;
    answered_ = dy;
    pending_ = true;
    dx.noalias() = before(t).transpose() * dy;
  }

 private:
  std::size_t chunk(Index t) const { return static_cast<std::size_t>(t / interval_); }

  static void write(const S* before, S* after, const Writes& in, Index t) {
    const auto h = in.hidden.col(t);
    scratch<S, Dynamic>(h.size(), [&](auto& scaled) {
      scaled = in.rate * h;
      add_outer_product(after, before, in.decay, h.data(), scaled.data(), h.size(), h.size());
    });
  }

  // What token t reads.
  const Matrix& before(Index t) const {
    const Index i = t % interval_;
    return i == 0 ? kept_[chunk(t)] : between_[static_cast<std::size_t>(i - 1)];
  }
  // Those of t's chunk, up to t.
  void make_between(const Writes& in, Index t) {
    for (Index i = t - t % interval_; i < t; ++i) {
      auto& after = between_[static_cast<std::size_t>(i % interval_)];
      after.resizeLike(dA_);
      write(before(i).data(), after.data(), in, i);
    }
  }

  bool keeps_ = false;  ///< the last pass was a train pass
  Index interval_ = 1;
  std::vector<Matrix> kept_;     ///< A_0, A_C, A_2C, …
  std::vector<Matrix> between_;  ///< inside one chunk of C tokens
  // The gradient of A_t is fade_ dA_, and one product more while that is pending.
  Matrix dA_;
  S fade_ = S(1);
  bool pending_ = false;
  Eigen::Matrix<S, Dynamic, 1> asked_, answered_, product_;
};

/// The attention form. Cost: 4 t R flops a read of token t, 2 R² more where A_0 is not zero, and
/// 2 R² a token for A_T.
template <class S> class HebbianAttention {
 public:
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  using Vector = Eigen::Matrix<S, Dynamic, 1>;
  using Weights = FastWeights<S>;
  using Writes = HebbianWrites<S>;

  void start(const Weights& A, const Writes& in, bool train) {
    const Index steps = in.hidden.cols();
    fresh_ = is_zero(A);
    if (train) initial_.resize(A.rows(), A.cols());  // room for a past before there is one
    if (train && !fresh_) initial_ = A;
    powers_.resize(steps + 1);
    slopes_.resize(steps + 1);
    weights_.resize(steps);
    dweights_.resize(steps);
    powers_[steps] = S(1);
    slopes_[steps] = S(0);
    for (Index k = 1; k <= steps; ++k) {
      powers_[steps - k] = powers_[steps - k + 1] * in.decay;
      slopes_[steps - k] = S(static_cast<double>(k)) * powers_[steps - k + 1];
    }
  }
  template <class X, class Y>
  void read(const Weights& A, const Writes& in, Index t, const X& x, Y& y) {
    if (!fresh_) y.noalias() += (power(t) * A) * x;
    if (t == 0) return;
    const auto h = in.hidden.leftCols(t);
    auto weights = weights_.head(t);
    weights.noalias() = h.transpose() * x;
    weights.array() *= in.rate * powers_.tail(t).array();
    y.noalias() += h * weights;
  }
  void write(Weights&, const Writes&, Index) {}
  void finish(Weights& A, const Writes& in) {
    const Index steps = in.hidden.cols();
    if (!fresh_) A *= power(steps);
    faded_.noalias() = in.hidden * (in.rate * powers_.tail(steps)).asDiagonal();
    add_product(A, faded_, in.hidden.transpose());
  }

  void start_backward(const Writes&) {}
  void write_vjp(const Writes&, Index, HebbianGradients<S>&) {}
  template <class X, class Dy, class Dx>
  void read_vjp(const Writes& in, Index t, const X& x, const Dy& dy, HebbianGradients<S>& out,
                Dx& dx) {
    if (fresh_)
      dx.setZero();
    else
      initial_vjp(t, x, dy, out, dx);
    if (t == 0) return;
    const auto h = in.hidden.leftCols(t);
    auto weights = weights_.head(t), dweights = dweights_.head(t);
    weights.noalias() = h.transpose() * x;
    dweights.noalias() = h.transpose() * dy;
    if (in.learns_rates) rates_vjp(in, t, out);
    const auto faded = in.rate * powers_.tail(t).array();
    weights.array() *= faded;
    dweights.array() *= faded;
    dx.noalias() += h * dweights;
    add_outer_products(out.hidden.data(), dy.data(), weights.data(), x.data(), dweights.data(),
                       x.size(), t);
  }

 private:
  const S& power(Index k) const { return powers_[powers_.size() - 1 - k]; }

  template <class X, class Dy, class Dx>
  void initial_vjp(Index t, const X& x, const Dy& dy, HebbianGradients<S>& out, Dx& dx) const {
    dx.noalias() = initial_.transpose() * dy;
    out.decay += slopes_[slopes_.size() - 1 - t] * dx.cwiseProduct(x).sum();
    dx *= power(t);
  }
  void rates_vjp(const Writes& in, Index t, HebbianGradients<S>& out) const {
    const auto both = weights_.head(t).array() * dweights_.head(t).array();
    out.rate += (both * powers_.tail(t).array()).sum();
    out.decay += in.rate * (both * slopes_.tail(t).array()).sum();
  }

  bool fresh_ = true;          ///< A_0 is zero
  Matrix initial_;             ///< A_0 where it is not
  Vector powers_, slopes_;     ///< λ^T … λ⁰, and their derivatives
  Vector weights_, dweights_;  ///< of one read
  Matrix faded_;
};

}  // namespace fw::detail
