#pragma once

#include <algorithm>
#include <fastweights/core/products.hpp>
#include <fastweights/kernels/amx/solve_chunk.hpp>
#include <fastweights/kernels/amx/tile_product.hpp>
#include <fastweights/kernels/scan/pair.hpp>
#include <utility>

/// \file
/// The delta rule's scan by products of tiles, 64 tokens at a time. With a token a row in K, V, Q,
/// Y, and S = Wᵀ, d_k×d_v:
///
///     L = strictly lower triangle of diag(β) K Kᵀ,   M = lower triangle of Q Kᵀ
///     N = (I + L)⁻¹ − I
///     R = diag(β) (V − K S),   E = R + N R,   Y = Q S + M E,   S ← S + Kᵀ E
///
/// What is above R is done once a chunk, the rest for 32 values at a time, which need nothing of
/// the others and whose part of S stays near while it is used. Sizes are padded with zeros: tokens,
/// keys and values to multiples of 32. Factors of products are bf16, of `planes` planes; sums, N
/// and S are float.

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

template <class Tiles, int planes> class TileDelta {
 public:
  TileDelta(Index dk, Index dv) : dv_(dv), dk_(dk), wide_((dk + side - 1) / side * side) {
    struct Use;
    const Index panels = (dv + side - 1) / side;
    float* floats = thread_buffer<float, Use>(wide_ * (panels * side + chunk) + 3 * chunk * chunk);
    const auto take = [&](Index n) { return std::exchange(floats, floats + n); };
    state_ = take(wide_ * panels * side), tokens_ = take(wide_ * chunk);
    met_ = take(chunk * chunk), solved_ = take(chunk * chunk);
    errors_ = take(chunk * side), answers_ = take(chunk * side);
    const Index entries = wide_ * (4 * chunk + side) + 2 * chunk * chunk + chunk * side;
    pairs_ = thread_buffer<Bf16Pair, Use>(planes * entries / 2);
    keys_ = factor(chunk, wide_ / 2), queries_ = factor(chunk, wide_ / 2);
    keys_across_ = factor(wide_ / 2, chunk), keys_down_ = factor(wide_, chunk / 2);
    corrections_ = factor(chunk, chunk / 2), weights_ = factor(chunk, chunk / 2);
    state_pairs_ = factor(wide_ / 2, side), errors_pairs_ = factor(chunk / 2, side);
  }

  /// Takes W, d_v×d_k with contiguous columns, through `steps` tokens.
  template <class Matrix> void run(Matrix& W, const Tokens<float>& t, Index steps) {
    copy_in(W.data(), W.colStride());
    TileProduct<Tiles> product;
    for (Index first = 0; first < steps; first += chunk) {
      first_ = first, count_ = std::min(chunk, steps - first);
      rows_ = (count_ + side - 1) / side * side;
      prepare(product, t);
      for (Index value = 0; value < dv_; value += side)
        visit(product, t, state_ + value * wide_, value, std::min(side, dv_ - value));
    }
    copy_out(W.data(), W.colStride());
  }

 private:
  static constexpr Index chunk = 64, side = TileProduct<Tiles>::size;

  Bf16Matrix factor(Index rows, Index columns) {
    const Index size = rows * columns;
    return {std::exchange(pairs_, pairs_ + planes * size), columns, size};
  }

  // S by panels of 32 values, a key a row.
  void copy_in(const float* W, Index stride) {
    for (Index value = 0; value < dv_; value += side) {
      float* const panel = state_ + value * wide_;
      const Index rows = std::min(side, dv_ - value);
      std::fill_n(panel, wide_ * side, 0.0f);
      for (Index k = 0; k < dk_; ++k) std::copy_n(W + value + k * stride, rows, panel + k * side);
    }
  }
  void copy_out(float* W, Index stride) const {
    for (Index value = 0; value < dv_; value += side) {
      const float* const panel = state_ + value * wide_;
      const Index rows = std::min(side, dv_ - value);
      for (Index k = 0; k < dk_; ++k) std::copy_n(panel + k * side, rows, W + value + k * stride);
    }
  }

  // Tokens of the chunk a row, keys and queries.
  void copy_tokens(const Columns<const float>& from) {
    std::fill_n(tokens_, rows_ * wide_, 0.0f);
    for (Index i = 0; i < count_; ++i) std::copy_n(from(first_ + i), dk_, tokens_ + i * wide_);
  }

  void prepare(TileProduct<Tiles>& product, const Tokens<float>& t) {
    copy_tokens(t.key);
    make_left<planes>(tokens_, wide_, rows_, wide_, keys_);
    transpose_pairs<planes>(keys_, rows_, wide_ / 2, keys_across_);
    const Bf16Matrix lent{queries_.data, wide_, queries_.plane};
    make_right<planes>(tokens_, wide_, rows_, wide_, lent);
    transpose_pairs<planes>(lent, rows_ / 2, wide_, keys_down_);
    copy_tokens(t.query);
    make_left<planes>(tokens_, wide_, rows_, wide_, queries_);
    meet(product, keys_);
    for (Index i = 0; i < chunk; ++i) {
      const Index past = i < count_ ? i : 0;
      for (Index j = 0; j < past; ++j) met_[i * chunk + j] *= *t.beta(first_ + i);
      std::fill(met_ + i * chunk + past, met_ + (i + 1) * chunk, 0.0f);
    }
    solve_chunk(met_, solved_);
    make_left<planes>(solved_, chunk, rows_, rows_, corrections_);
    meet(product, queries_);
    for (Index i = 0; i < rows_; ++i)
      std::fill(met_ + i * chunk + i + 1, met_ + (i + 1) * chunk, 0.0f);
    make_left<planes>(met_, chunk, rows_, rows_, weights_);
  }

  // met = x Kᵀ, but for the block above the diagonal.
  void meet(TileProduct<Tiles>& product, const Bf16Matrix& x) {
    for (Index i = 0; i < rows_; i += side)
      for (Index j = 0; j <= i; j += side) {
        product.clear();
        product.template add<planes>(x.from(i, 0), keys_across_.from(0, j), wide_);
        product.store(met_ + i * chunk + j, chunk);
      }
  }

  // `rows` values from `value` on, whose part of S is `state`.
  void visit(TileProduct<Tiles>& product, const Tokens<float>& t, float* state, Index value,
             Index rows) {
    make_right<planes>(state, side, wide_, side, state_pairs_);
    for (Index i = 0; i < rows_; i += side) {
      product.clear();
      product.template add<planes>(keys_.from(i, 0), state_pairs_, wide_);
      product.store(errors_ + i * side, side);
    }
    subtract(t, value, rows);
    make_right<planes>(errors_, side, rows_, side, errors_pairs_);
    for (Index i = 0; i < rows_; i += side) {
      product.load(errors_ + i * side, side);
      product.template add<planes>(corrections_.from(i, 0), errors_pairs_, i + side);
      product.store(errors_ + i * side, side);
    }
    make_right<planes>(errors_, side, rows_, side, errors_pairs_);
    for (Index i = 0; i < rows_; i += side) {
      product.clear();
      product.template add<planes>(queries_.from(i, 0), state_pairs_, wide_);
      product.template add<planes>(weights_.from(i, 0), errors_pairs_, i + side);
      product.store(answers_ + i * side, side);
    }
    for (Index i = 0; i < count_; ++i)
      std::copy_n(answers_ + i * side, rows, t.output(first_ + i) + value);
    for (Index k = 0; k < wide_; k += side) {
      product.load(state + k * side, side);
      product.template add<planes>(keys_down_.from(k, 0), errors_pairs_, rows_);
      product.store(state + k * side, side);
    }
  }

  // From what the keys retrieve to R.
  void subtract(const Tokens<float>& t, Index value, Index rows) {
    for (Index i = 0; i < rows_; ++i) {
      float* const error = errors_ + i * side;
      const Index given = i < count_ ? rows : 0;
      if (given > 0) {
        const float* const v = t.value(first_ + i) + value;
        const float beta = *t.beta(first_ + i);
        for (Index j = 0; j < given; ++j) error[j] = beta * (v[j] - error[j]);
      }
      std::fill(error + given, error + side, 0.0f);
    }
  }

  Index dv_, dk_, wide_;        // wide: d_k, padded
  Index first_, count_, rows_;  // of the chunk; rows: count, padded
  float *state_, *tokens_, *met_, *solved_, *errors_, *answers_;
  Bf16Pair* pairs_;
  Bf16Matrix keys_, keys_across_, keys_down_, queries_, corrections_, weights_;
  Bf16Matrix state_pairs_, errors_pairs_;
};

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
