#pragma once

#include <algorithm>
#include <fastweights/kernels/amx/solve_chunk.hpp>
#include <fastweights/kernels/amx/tile_product.hpp>
#include <fastweights/kernels/scan/pair.hpp>
#include <fastweights/math/products.hpp>
#include <utility>

/// \file
/// The delta rule's scan by products of tiles, in chunks of 64 tokens. K, V, Q and Y have one token
/// per row, and S = Wᵀ is d_k×d_v:
///
///     L = strictly lower triangle of diag(β) K Kᵀ,   M = lower triangle of Q Kᵀ
///     N = (I + L)⁻¹ − I
///     R = diag(β) (V − K S),   U = R + N R,   Y = Q S + M U,   S ← S + Kᵀ U
///
/// L, M and N are computed once per chunk. The other equations run for 32 values at a time: they
/// are independent of the other values, and their part of S stays in the cache. Tokens, keys and
/// values are padded with zeros to multiples of 32. Factors of products are bf16 with `planes`
/// planes; sums, N and S are float.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The sequence of one head: keys and queries have d_k rows, values and outputs d_v rows.
struct TileTokens {
  Columns<const float> key, value, query;
  Columns<float> output;
  Columns<const float> beta;
};

template <class Tiles, int planes> class TileDelta {
 public:
  TileDelta(Index dk, Index dv) : dv_(dv), dk_(dk), padded_dk_((dk + side - 1) / side * side) {
    struct Use;
    const Index panels = (dv + side - 1) / side;
    float* floats =
        thread_buffer<float, Use>(padded_dk_ * (panels * side + chunk) + 3 * chunk * chunk);
    const auto take = [&](Index n) { return std::exchange(floats, floats + n); };
    state_ = take(padded_dk_ * panels * side), tokens_ = take(padded_dk_ * chunk);
    products_ = take(chunk * chunk), inverse_ = take(chunk * chunk);
    updates_ = take(chunk * side), outputs_ = take(chunk * side);
    const Index entries = padded_dk_ * (4 * chunk + side) + 2 * chunk * chunk + chunk * side;
    pairs_ = thread_buffer<Bf16Pair, Use>(planes * entries / 2);
    keys_ = factor(chunk, padded_dk_ / 2), queries_ = factor(chunk, padded_dk_ / 2);
    keys_transposed_ = factor(padded_dk_ / 2, chunk),
    keys_transposed_left_ = factor(padded_dk_, chunk / 2);
    inverse_pairs_ = factor(chunk, chunk / 2), weights_ = factor(chunk, chunk / 2);
    state_pairs_ = factor(padded_dk_ / 2, side), update_pairs_ = factor(chunk / 2, side);
  }

  /// Processes `steps` tokens. W is d_v×d_k with contiguous columns.
  template <class Matrix> void run(Matrix& W, const TileTokens& t, Index steps) {
    copy_in(W.data(), W.colStride());
    TileProduct<Tiles> product;
    for (Index first = 0; first < steps; first += chunk) {
      first_ = first, count_ = std::min(chunk, steps - first);
      rows_ = (count_ + side - 1) / side * side;
      prepare(product, t);
      for (Index value = 0; value < dv_; value += side)
        process_values(product, t, state_ + value * padded_dk_, value, std::min(side, dv_ - value));
    }
    copy_out(W.data(), W.colStride());
  }

 private:
  static constexpr Index chunk = 64, side = TileProduct<Tiles>::size;

  Bf16Matrix factor(Index rows, Index columns) {
    const Index size = rows * columns;
    return {std::exchange(pairs_, pairs_ + planes * size), columns, size};
  }

  // Copies W to panels of 32 values of S, with one key per row.
  void copy_in(const float* W, Index stride) {
    for (Index value = 0; value < dv_; value += side) {
      float* const panel = state_ + value * padded_dk_;
      const Index rows = std::min(side, dv_ - value);
      std::fill_n(panel, padded_dk_ * side, 0.0f);
      for (Index k = 0; k < dk_; ++k) std::copy_n(W + value + k * stride, rows, panel + k * side);
    }
  }
  void copy_out(float* W, Index stride) const {
    for (Index value = 0; value < dv_; value += side) {
      const float* const panel = state_ + value * padded_dk_;
      const Index rows = std::min(side, dv_ - value);
      for (Index k = 0; k < dk_; ++k) std::copy_n(panel + k * side, rows, W + value + k * stride);
    }
  }

  // Copies the keys or queries of the chunk, one token per row.
  void copy_tokens(const Columns<const float>& from) {
    std::fill_n(tokens_, rows_ * padded_dk_, 0.0f);
    for (Index i = 0; i < count_; ++i) std::copy_n(from(first_ + i), dk_, tokens_ + i * padded_dk_);
  }

  void prepare(TileProduct<Tiles>& product, const TileTokens& t) {
    copy_tokens(t.key);
    make_left<planes>(tokens_, padded_dk_, rows_, padded_dk_, keys_);
    transpose_pairs<planes>(keys_, rows_, padded_dk_ / 2, keys_transposed_);
    const Bf16Matrix row_pairs{queries_.data, padded_dk_, queries_.plane};
    make_right<planes>(tokens_, padded_dk_, rows_, padded_dk_, row_pairs);
    transpose_pairs<planes>(row_pairs, rows_ / 2, padded_dk_, keys_transposed_left_);
    copy_tokens(t.query);
    make_left<planes>(tokens_, padded_dk_, rows_, padded_dk_, queries_);
    multiply_by_keys(product, keys_);
    for (Index i = 0; i < chunk; ++i) {
      const Index previous = i < count_ ? i : 0;
      for (Index j = 0; j < previous; ++j) products_[i * chunk + j] *= *t.beta(first_ + i);
      std::fill(products_ + i * chunk + previous, products_ + (i + 1) * chunk, 0.0f);
    }
    solve_chunk(products_, inverse_);
    make_left<planes>(inverse_, chunk, rows_, rows_, inverse_pairs_);
    multiply_by_keys(product, queries_);
    for (Index i = 0; i < rows_; ++i)
      std::fill(products_ + i * chunk + i + 1, products_ + (i + 1) * chunk, 0.0f);
    make_left<planes>(products_, chunk, rows_, rows_, weights_);
  }

  // products = x Kᵀ, without the block above the diagonal.
  void multiply_by_keys(TileProduct<Tiles>& product, const Bf16Matrix& x) {
    for (Index i = 0; i < rows_; i += side)
      for (Index j = 0; j <= i; j += side) {
        product.clear();
        product.template add<planes>(x.from(i, 0), keys_transposed_.from(0, j), padded_dk_);
        product.store(products_ + i * chunk + j, chunk);
      }
  }

  // Processes `rows` values from `value` on. `state` is their part of S.
  void process_values(TileProduct<Tiles>& product, const TileTokens& t, float* state, Index value,
                      Index rows) {
    make_right<planes>(state, side, padded_dk_, side, state_pairs_);
    for (Index i = 0; i < rows_; i += side) {
      product.clear();
      product.template add<planes>(keys_.from(i, 0), state_pairs_, padded_dk_);
      product.store(updates_ + i * side, side);
    }
    subtract(t, value, rows);
    make_right<planes>(updates_, side, rows_, side, update_pairs_);
    for (Index i = 0; i < rows_; i += side) {
      product.load(updates_ + i * side, side);
      product.template add<planes>(inverse_pairs_.from(i, 0), update_pairs_, i + side);
      product.store(updates_ + i * side, side);
    }
    make_right<planes>(updates_, side, rows_, side, update_pairs_);
    for (Index i = 0; i < rows_; i += side) {
      product.clear();
      product.template add<planes>(queries_.from(i, 0), state_pairs_, padded_dk_);
      product.template add<planes>(weights_.from(i, 0), update_pairs_, i + side);
      product.store(outputs_ + i * side, side);
    }
    for (Index i = 0; i < count_; ++i)
      std::copy_n(outputs_ + i * side, rows, t.output(first_ + i) + value);
    for (Index k = 0; k < padded_dk_; k += side) {
      product.load(state + k * side, side);
      product.template add<planes>(keys_transposed_left_.from(k, 0), update_pairs_, rows_);
      product.store(state + k * side, side);
    }
  }

  // updates ← R, given updates = K S.
  void subtract(const TileTokens& t, Index value, Index rows) {
    for (Index i = 0; i < rows_; ++i) {
      float* const update = updates_ + i * side;
      const Index valid = i < count_ ? rows : 0;
      if (valid > 0) {
        const float* const v = t.value(first_ + i) + value;
        const float beta = *t.beta(first_ + i);
        for (Index j = 0; j < valid; ++j) update[j] = beta * (v[j] - update[j]);
      }
      std::fill(update + valid, update + side, 0.0f);
    }
  }

  Index dv_, dk_, padded_dk_;   // padded_dk: d_k rounded up to a multiple of 32
  Index first_, count_, rows_;  // first token, tokens and padded tokens of the chunk
  float *state_, *tokens_, *products_, *inverse_, *updates_, *outputs_;
  Bf16Pair* pairs_;
  Bf16Matrix keys_, keys_transposed_, keys_transposed_left_, queries_, inverse_pairs_, weights_;
  Bf16Matrix state_pairs_, update_pairs_;
};

}  // namespace fw::detail
