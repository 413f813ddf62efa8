#pragma once

#include <algorithm>
#include <cmath>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/views.hpp>
#include <fastweights/kernels/simd/outer_product.hpp>
#include <fastweights/math/products.hpp>
#include <vector>

/// \file
/// Two forms of the fast weights A of fast_weights_rnn(). A sequence of hidden states h_0, h_1, …
/// writes to them and reads them at every token:
///
///     A_{t+1} = λ A_t + η h_t h_tᵀ
///     y = A_t x = λᵗ A_0 x + η Σ_{i<t} λ^{t−1−i} h_i (h_i·x)
///
/// HebbianMatrix stores A. HebbianAttention uses the hidden states, which are the output of the
/// operation and there anyway. The functions of both, in the order of the operation's calls:
///
///     start(A, in, train)                 before the first token; A is the A_0 of the state
///     read(A, in, t, x, y)                y += A_t x, any number of times per token
///     write(A, in, t)                     after the reads of token t
///     finish(A, in)                       A becomes A_T
///     start_backward(in)                  of a train pass; or, with the gradient of A_T,
///     start_backward(in, dA, out)         which adds to that of h_t; then, from the last token:
///     write_vjp(in, t, out)               adds to the gradient of h_t
///     read_vjp(in, t, x, dy, out, dx)     dx = A_tᵀ dy; adds to the gradients of h_0 … h_{t−1}, or
///                                         leaves that to their write_vjp
///     finish_backward(dA)                 dA becomes the gradient of A_0

namespace fw::inline FASTWEIGHTS_ABI {

/// The way in which fast_weights_rnn() represents its fast weights during a sequence.
enum class FastWeightsForm {
  cheaper,   ///< the faster of the two for the given sequence
  matrix,    ///< the matrix A, updated at every token
  attention  ///< attention to the previous hidden states
};

namespace detail {

/// λ and η, whether their gradients are needed, and the hidden states; token t writes column t.
template <class S> struct HebbianWrites {
  S decay, rate;
  bool learns_rates;
  Eigen::Map<const Eigen::Matrix<S, Dynamic, Dynamic>> hidden;
};

/// The gradients of HebbianWrites.
template <class S> struct HebbianGradients {
  S decay, rate;
  Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>> hidden;
};

/// The fast weights of one sequence in a state.
template <class S> using FastWeights = Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>>;

/// True if A is zero. False if A contains a NaN.
template <class Matrix> bool is_zero(const Matrix& A) { return A.cwiseAbs().sum() == 0; }

/// True if the attention form takes less time for `steps` tokens of each sequence with
/// `inner_steps` reads a token, from the matrices A of all sequences, side by side.
// Compares costs in units of R² multiplications per token. Forward, the matrix form takes 1 per
// write and 1 per read; the attention form takes 2 t/R per read of token t (T/R on average) and 1
// per read of the initial matrix. Backward, the matrix form recomputes its writes and takes 2 per
// write and 2 per read; the attention form takes 5 t/R per read and 1 per read of the initial
// matrix. Measurements put the matrix form at 4 + 5 S in all, more than its multiplications, and at
// 1.25 times that if the stored matrices exceed the cache. The overhead of calls with short vectors
// equals the cost of 16 or 20 more tokens. The gradient of A_0, if somebody asks for it, costs the
// attention form 1 more per read and 3 per token; the comparison leaves that out.
template <class Matrix>
bool attention_is_cheaper(Index steps, Index inner_steps, const Matrix& A, bool train) {
  if (steps == 1 && !train) return false;  // a streaming step passes over A once
  const double reads = static_cast<double>(inner_steps);
  const double length = static_cast<double>(steps);
  const double tokens = (length + (train ? 20 : 16)) / static_cast<double>(A.rows());
  const double stored_bytes =
      2 * std::sqrt(length) * sizeof(typename Matrix::Scalar) * static_cast<double>(A.size());
  const double matrix = train ? (4 + 5 * reads) * (stored_bytes > 1 << 20 ? 1.25 : 1) : 1 + reads;
  const double attention = reads * tokens * (train ? 3.5 : 1);
  const double initial = reads * (train ? 2 : 1);
  return attention + initial < matrix || (attention < matrix && is_zero(A));
}

/// The matrix form. A train pass stores a checkpoint of A every √T tokens, and the backward pass
/// recomputes the matrices in between. Cost: 3 R² flops per write and 2 R² per read.
template <class S> class HebbianMatrix {
 public:
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  using Weights = FastWeights<S>;
  using Writes = HebbianWrites<S>;

  void start(const Weights&, const Writes& in, bool train) {
    is_training_ = train;
    if (!is_training_) return;
    const Index steps = in.hidden.cols();
    interval_ = std::max<Index>(1, static_cast<Index>(std::sqrt(static_cast<double>(steps))));
    checkpoints_.resize(static_cast<std::size_t>((steps + interval_ - 1) / interval_));
    recomputed_.resize(static_cast<std::size_t>(interval_));
  }
  template <class X, class Y> void read(const Weights& A, const Writes&, Index, const X& x, Y& y) {
    y.noalias() += A * x;
  }
  void write(Weights& A, const Writes& in, Index t) {
    if (is_training_ && t % interval_ == 0) checkpoints_[chunk(t)] = A;
    write(A.data(), A.data(), in, t);
  }
  void finish(Weights&, const Writes&) {}

  void start_backward(const Writes& in) {
    const Index r = in.hidden.rows();
    dA_.setZero(r, r);
    for (auto* each : {&pending_x_, &pending_dy_, &product_}) each->setZero(r);
    is_pending_ = false;
    dA_scale_ = S(1);
  }
  void start_backward(const Writes& in, const Weights& dA, HebbianGradients<S>&) {
    start_backward(in);
    dA_ = dA;
    is_pending_ = true;  // an outer product of zeros
  }
  void write_vjp(const Writes& in, Index t, HebbianGradients<S>& out) {
    const bool last = t % interval_ == interval_ - 1 || t + 1 == in.hidden.cols();
    if (last) recompute(in, t);
    if (!is_pending_) return;  // no token has read this write
    const auto h = in.hidden.col(t);
    add_outer_product(dA_.data(), dA_scale_, pending_dy_.data(), pending_x_.data(), h.size(),
                      h.size(), h.data(), product_.data());
    if (in.learns_rates) {
      out.rate += product_.cwiseProduct(h).sum();
      out.decay += dA_.cwiseProduct(matrix_at(t)).sum();
    }
    product_.noalias() += dA_.transpose() * h;
    out.hidden.col(t) += in.rate * product_;
    is_pending_ = false;
    dA_scale_ = in.decay;
  }
  template <class X, class Dy, class Dx>
  void read_vjp(const Writes&, Index t, const X& x, const Dy& dy, HebbianGradients<S>&, Dx& dx) {
    if (is_pending_) {
      add_outer_product(dA_.data(), dA_.data(), dA_scale_, pending_dy_.data(), pending_x_.data(),
                        x.size(), x.size());
      dA_scale_ = S(1);
    }
    pending_x_ = x;
    pending_dy_ = dy;
    is_pending_ = true;
    dx.noalias() = matrix_at(t).transpose() * dy;
  }
  void finish_backward(Weights& dA) const {
    add_outer_product(dA.data(), dA_.data(), dA_scale_, pending_dy_.data(), pending_x_.data(),
                      dA.rows(), dA.cols());
  }

 private:
  std::size_t chunk(Index t) const { return static_cast<std::size_t>(t / interval_); }

  static void write(const S* from, S* to, const Writes& in, Index t) {
    const auto h = in.hidden.col(t);
    scratch<S, Dynamic>(h.size(), [&](auto& scaled) {
      scaled = in.rate * h;
      add_outer_product(to, from, in.decay, h.data(), scaled.data(), h.size(), h.size());
    });
  }

  // The matrix that token t reads.
  const Matrix& matrix_at(Index t) const {
    const Index i = t % interval_;
    return i == 0 ? checkpoints_[chunk(t)] : recomputed_[static_cast<std::size_t>(i - 1)];
  }
  // Recomputes the matrices of t's chunk up to t.
  void recompute(const Writes& in, Index t) {
    for (Index i = t - t % interval_; i < t; ++i) {
      auto& after = recomputed_[static_cast<std::size_t>(i % interval_)];
      after.resizeLike(dA_);
      write(matrix_at(i).data(), after.data(), in, i);
    }
  }

  bool is_training_ = false;  ///< the last pass was a train pass
  Index interval_ = 1;
  std::vector<Matrix> checkpoints_;  ///< A_0, A_C, A_2C, …
  std::vector<Matrix> recomputed_;   ///< the other matrices of one chunk of C tokens
  // The gradient of A_t is dA_scale_ dA_, plus pending_dy_ pending_x_ᵀ if is_pending_.
  Matrix dA_;
  S dA_scale_ = S(1);
  bool is_pending_ = false;
  Eigen::Matrix<S, Dynamic, 1> pending_x_, pending_dy_, product_;
};

/// The attention form. Cost: 4 t R flops per read of token t, 2 R² more if A_0 is not zero, and
/// 2 R² per token for A_T.
template <class S> class HebbianAttention {
 public:
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  using Vector = Eigen::Matrix<S, Dynamic, 1>;
  using Weights = FastWeights<S>;
  using Writes = HebbianWrites<S>;

  void start(const Weights& A, const Writes& in, bool train) {
    const Index steps = in.hidden.cols();
    starts_at_zero_ = is_zero(A);
    // Also if A_0 is zero, so that a later A_0 other than zero allocates nothing.
    if (train) initial_.resize(A.rows(), A.cols());
    if (train && !starts_at_zero_) initial_ = A;
    powers_.resize(steps + 1);
    derivatives_.resize(steps + 1);
    weights_.resize(steps);
    dweights_.resize(steps);
    powers_[steps] = S(1);
    derivatives_[steps] = S(0);
    for (Index k = 1; k <= steps; ++k) {
      powers_[steps - k] = powers_[steps - k + 1] * in.decay;
      derivatives_[steps - k] = S(static_cast<double>(k)) * powers_[steps - k + 1];
    }
  }
  template <class X, class Y>
  void read(const Weights& A, const Writes& in, Index t, const X& x, Y& y) {
    if (!starts_at_zero_) y.noalias() += (power(t) * A) * x;
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
    if (!starts_at_zero_) A *= power(steps);
    scaled_hidden_.noalias() = in.hidden * (in.rate * powers_.tail(steps)).asDiagonal();
    add_product(A, scaled_hidden_, in.hidden.transpose());
  }

  void start_backward(const Writes&) { is_asked_ = false; }
  void start_backward(const Writes& in, const Weights& dA, HebbianGradients<S>& out) {
    is_asked_ = true;
    finish_vjp(in, dA, out);
  }
  void write_vjp(const Writes&, Index, HebbianGradients<S>&) {}
  template <class X, class Dy, class Dx>
  void read_vjp(const Writes& in, Index t, const X& x, const Dy& dy, HebbianGradients<S>& out,
                Dx& dx) {
    if (starts_at_zero_)
      dx.setZero();
    else
      initial_vjp(t, x, dy, out, dx);
    if (is_asked_) dA_.noalias() += (power(t) * dy) * x.transpose();
    if (t == 0) return;
    const auto h = in.hidden.leftCols(t);
    auto weights = weights_.head(t), dweights = dweights_.head(t);
    weights.noalias() = h.transpose() * x;
    dweights.noalias() = h.transpose() * dy;
    if (in.learns_rates) rates_vjp(in, t, out);
    const auto factors = in.rate * powers_.tail(t).array();
    weights.array() *= factors;
    dweights.array() *= factors;
    dx.noalias() += h * dweights;
    add_outer_products(out.hidden.data(), dy.data(), weights.data(), x.data(), dweights.data(),
                       x.size(), t);
  }
  void finish_backward(Weights& dA) const { dA = dA_; }

 private:
  // The gradients of finish: of h_t, of the rates, and, in dA_, of A_0.
  void finish_vjp(const Writes& in, const Weights& dA, HebbianGradients<S>& out) {
    const Index steps = in.hidden.cols();
    scaled_hidden_.noalias() = dA * in.hidden;
    if (in.learns_rates) {
      weights_ = in.hidden.cwiseProduct(scaled_hidden_).colwise().sum().transpose();
      out.rate += weights_.cwiseProduct(powers_.tail(steps)).sum();
      out.decay += in.rate * weights_.cwiseProduct(derivatives_.tail(steps)).sum();
      if (!starts_at_zero_) out.decay += derivatives_[0] * initial_.cwiseProduct(dA).sum();
    }
    scaled_hidden_.noalias() += dA.transpose() * in.hidden;
    out.hidden += scaled_hidden_ * (in.rate * powers_.tail(steps)).asDiagonal();
    dA_ = power(steps) * dA;
  }

  const S& power(Index k) const { return powers_[powers_.size() - 1 - k]; }

  template <class X, class Dy, class Dx>
  void initial_vjp(Index t, const X& x, const Dy& dy, HebbianGradients<S>& out, Dx& dx) const {
    dx.noalias() = initial_.transpose() * dy;
    out.decay += derivatives_[derivatives_.size() - 1 - t] * dx.cwiseProduct(x).sum();
    dx *= power(t);
  }
  void rates_vjp(const Writes& in, Index t, HebbianGradients<S>& out) const {
    const auto both = weights_.head(t).array() * dweights_.head(t).array();
    out.rate += (both * powers_.tail(t).array()).sum();
    out.decay += in.rate * (both * derivatives_.tail(t).array()).sum();
  }

  bool starts_at_zero_ = true;   ///< A_0 is zero
  bool is_asked_ = false;        ///< somebody asks for the gradient of A_0
  Matrix dA_;                    ///< that gradient
  Matrix initial_;               ///< A_0 if it is not zero
  Vector powers_, derivatives_;  ///< λ^T … λ⁰, and their derivatives by λ
  Vector weights_, dweights_;    ///< of one read
  Matrix scaled_hidden_;
};

}  // namespace detail

}  // namespace fw
