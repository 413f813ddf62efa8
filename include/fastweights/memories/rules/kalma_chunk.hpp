#pragma once

#include <fastweights/core/member_storage.hpp>
#include <fastweights/math/chebyshev_solver.hpp>
#include <type_traits>

/// \file
/// A chunk of KalmaMemory. All its tokens solve together. With G and W before the chunk,
///
///     G_t x = a_t G x + Σ_{i≤t} D_it k_i (k_i·x)      D_it = α_{i+1} ⋯ α_t      a_t = α_1 ⋯ α_t
///
/// are matrix products, which read G once for many tokens. ‖G_t‖² follows token by token:
/// α² ‖G_{t−1}‖² + 2 α k·(G_{t−1} k) + ‖k‖⁴.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The tables of a chunk, in memory of `size` numbers.
template <class S> class KalmaChunk {
  using Matrix = Eigen::Map<Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>>;
  using Vector = Eigen::Map<Eigen::Matrix<S, Eigen::Dynamic, 1>>;

 public:
  static Index size(Index steps, Index dk) { return steps * (dk + 3 * steps + 3); }
  KalmaChunk(S* data, Index steps, Index dk)
      : rows_(data, steps, dk),
        decays_(rows_.data() + rows_.size(), steps, steps),
        scaled_(decays_.data() + decays_.size(), steps, steps),
        products_(scaled_.data() + scaled_.size(), steps, steps),
        all_(products_.data() + products_.size(), steps),
        inverse_(all_.data() + steps, steps),
        factors_(inverse_.data() + steps, steps) {}

  /// False if the square of an entry of G may leave the range of S in this chunk.
  template <class G, class Inputs> bool prepare(const G& g, const Inputs& inputs) {
    const auto& keys = inputs.key;
    rows_ = keys.transpose();
    set_decays(inputs.decay);
    matrix_scratch<S>(keys.rows(), keys.cols(), [&](auto& x) {
      set_product(x, g, keys);
      inverse_ = x.cwiseProduct(keys).colwise().sum().transpose();
    });
    set_product(products_, rows_, keys);
    if (!set_inverse_norms(g.cwiseProduct(g).sum(), inputs.decay)) return false;
    scaled_ = decays_ * inverse_.asDiagonal();
    factors_ = all_.cwiseProduct(inverse_);
    return true;
  }
  template <class State, class Inputs, class Queries, class Out>
  void read(const ChebyshevSolver& solver, const State& s, const Inputs& inputs,
            const Queries& queries, Out& out) {
    const auto multiply = [&](const auto& x, auto& to) {
      set_product(to, s.G, x);
      to *= factors_.asDiagonal();
      add_writes(to, inputs.key, x, scaled_);
      return S(1);
    };
    solver.with_scaled_solution(queries.query, multiply, [&](auto z) {
      for (Index t = 0; t < z.cols(); ++t) {
        const S mix = queries.mix[t];
        z.col(t) = (S(1) - mix) * queries.query.col(t) + (mix * inverse_[t]) * z.col(t);
      }
      out.output.setZero();
      add_writes(out.output, inputs.value, z, decays_);
      z *= all_.asDiagonal();  // W z without the decay may be too large for S
      add_product(out.output, s.W, z);
    });
  }
  template <class State, class Inputs> void write(State& s, const Inputs& inputs) {
    const Index last = all_.size() - 1;
    rows_ = decays_.col(last).asDiagonal() * rows_;
    s.W *= all_[last];
    add_product(s.W, inputs.value, rows_);
    s.G *= all_[last];
    add_product(s.G, inputs.key, rows_);
  }

 private:
  template <class Decay> void set_decays(const Decay& decay) {
    decays_.setZero();
    for (Index t = 0; t < all_.size(); ++t) {
      all_[t] = t > 0 ? S(all_[t - 1] * decay[t]) : decay[t];
      if (t > 0) decays_.col(t).head(t) = decay[t] * decays_.col(t - 1).head(t);
      decays_(t, t) = S(1);
    }
  }
  // From k_t·(G k_t) in inverse_ and KᵀK in products_. `square` is ‖G‖².
  template <class Decay> bool set_inverse_norms(S square, const Decay& decay) {
    if (square != S(0) && ChebyshevSolver::is_outside(square)) return false;
    for (Index t = 0; t < all_.size(); ++t) {
      S along = inverse_[t];  // k_t·(G_{t−1} k_t)
      if (t > 0) along *= all_[t - 1];
      for (Index i = 0; i < t; ++i) along += decays_(i, t - 1) * products_(i, t) * products_(i, t);
      const S alpha = decay[t], length = products_(t, t);
      square = alpha * (alpha * square + S(2) * along) + length * length;
      if (ChebyshevSolver::is_outside(square)) return false;
      inverse_[t] = S(1) / Eigen::numext::sqrt(square);
    }
    return true;
  }
  // to += U (D ∘ KᵀX)
  template <class To, class U, class X>
  void add_writes(To& to, const U& written, const X& x, const Matrix& decays) {
    set_product(products_, rows_, x);
    products_.array() *= decays.array();
    add_product(to, written, products_);
  }

  Matrix rows_, decays_, scaled_, products_;  // Kᵀ, D, D_it / ‖G_t‖, workspace
  Vector all_, inverse_, factors_;            // a_t, 1 / ‖G_t‖, a_t / ‖G_t‖
};

}  // namespace fw::detail
