#pragma once

#include <fastweights/kernels/backward/chunk_products.hpp>
#include <fastweights/kernels/backward/pair.hpp>
#include <fastweights/kernels/scan/panels.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The number of tokens of a chunk. Work within a chunk grows with it: 16 are slower for d = 64.
inline constexpr Index chunk = 8;

/// A number for every token of a chunk, in SIMD lanes.
template <class S>
using OfTokens =
    Rows<S, static_cast<int>(chunk / std::min(chunk, lanes<S>)), std::min(chunk, lanes<S>)>;

/// A square block of numbers, transposed.
template <class S> class TransposedBlock {
 public:
  static constexpr Index size = std::min(chunk, lanes<S>);

  /// From the rows row(0) … row(size − 1).
  template <class F> EIGEN_ALWAYS_INLINE explicit TransposedBlock(const F& row) {
    for (Index i = 0; i < size; ++i) rows_.packet[i] = Eigen::internal::ploadu<P>(row(i));
    if constexpr (size > 1) Eigen::internal::ptranspose(rows_);
  }
  EIGEN_ALWAYS_INLINE Rows<S, 1, size> row(Index i) const { return {rows_.packet[i]}; }

 private:
  using P = PacketWithin<S, size>;
  Eigen::internal::PacketBlock<P, static_cast<int>(size)> rows_;
};

/// to[t + chunk i] = x_t[i], i < n. The last of the `count` tokens is repeated.
template <class S> void transpose_tokens(S* to, const Columns<const S>& x, Index n, Index count) {
  using Block = TransposedBlock<S>;
  const auto token = [&](Index t) { return x(std::min(t, count - 1)); };
  const Index whole = n / Block::size * Block::size;
  for (Index i = 0; i < whole; i += Block::size)
    for (Index t = 0; t < chunk; t += Block::size) {
      const Block block([&](Index r) { return token(t + r) + i; });
      for (Index r = 0; r < Block::size; ++r) block.row(r).store(to + t + chunk * (i + r));
    }
  for (Index i = whole; i < n; ++i)
    for (Index t = 0; t < chunk; ++t) to[t + chunk * i] = token(t)[i];
}

/// x_t[i] += from[t + chunk i], i < n.
template <class S> void add_to_tokens(const Columns<S>& x, const S* from, Index n, Index count) {
  using Block = TransposedBlock<S>;
  const Index whole = n / Block::size * Block::size;
  for (Index i = 0; i < whole; i += Block::size)
    for (Index t = 0; t < count; t += Block::size) {
      const Block block([&](Index r) { return from + t + chunk * (i + r); });
      for (Index r = 0; r < std::min(Block::size, count - t); ++r) {
        auto sum = block.row(r);
        sum.add(decltype(sum)::load(x(t + r) + i));
        sum.store(x(t + r) + i);
      }
    }
  for (Index i = whole; i < n; ++i)
    for (Index t = 0; t < count; ++t) x(t)[i] += from[t + chunk * i];
}

/// Prefetches the vectors of the next chunk, a few with every call: the number of outstanding
/// memory requests is limited.
template <class S> class ChunkPrefetch {
 public:
  void start(Index tokens, Index calls) {
    tokens_ = tokens;
    calls_ = calls;
  }
  void add(const Columns<const S>& x, Index entries) {
    if (x.data == nullptr) return;
    vectors_[count_++] = {x.data, x.stride, entries};
    per_call_ = (count_ * tokens_ + calls_ - 1) / calls_;
  }
  EIGEN_ALWAYS_INLINE void next() {
    for (Index i = 0; i < per_call_ && done_ < tokens_; ++i) {
      Vector& v = vectors_[which_];
#if defined __GNUC__
      for (Index j = 0; j < v.entries; j += 64 / static_cast<Index>(sizeof(S)))
        __builtin_prefetch(v.data + j);
#endif
      v.data += v.stride;
      if (++which_ == count_) {
        which_ = 0;
        ++done_;
      }
    }
  }

 private:
  struct Vector {
    const S* data;
    Index stride, entries;
  };
  Vector vectors_[8];
  Index tokens_ = 0, calls_ = 1, count_ = 0, per_call_ = 0, which_ = 0, done_ = 0;
};

/// Buffers of a thread. Vectors of the tokens are transposed, with entry i of token t at
/// t + chunk i. Products of tokens t and s are at t + chunk s.
template <class S> struct ChunkBuffers {
  S *keys, *queries, *errors, *dy, *du, *dk;
  S *panel_one, *panel_two;  // the tokens' entries in the rows of a panel, one token after another
  S key_queries[chunk * chunk];  // k_t·q_s with decays
  S key_keys[chunk * chunk];     // −β_s k_t·k_s with decays
  S error_dys[chunk * chunk];    // e_t·dy_s, in the forward pass with decays
  S error_dus[chunk * chunk];    // e_t·du_s, in the forward pass with decays
};

/// Up to `chunk` tokens and the decays between them.
template <class S> struct Chunk {
  BackwardTokens<S> tokens;  // from the first of the chunk
  Index count;
  ChunkBuffers<S>& buffers;
  ChunkPrefetch<S> prefetch;
  S decays[chunk * chunk];  // α_{t+1} ⋯ α_s at t + chunk s, 0 for t > s
  S until[chunk];           // α_1 ⋯ α_t
  S betas[chunk];

  Chunk(const BackwardTokens<S>& all, Index first, Index steps, ChunkBuffers<S>& all_buffers)
      : tokens(all.from(first)), count(std::min(chunk, steps - first)), buffers(all_buffers) {
    std::fill_n(decays, chunk * chunk, S(0));
    std::fill_n(until, chunk, S(0));
    std::fill_n(betas, chunk, S(0));
    S product = S(1);
    for (Index s = 0; s < count; ++s) {
      const bool has_decay = tokens.decays.data != nullptr && first + s > 0;
      const S decay = has_decay ? *tokens.decays(s) : S(1);
      until[s] = product *= decay;
      for (Index t = 0; t < s; ++t) decays[t + chunk * s] = decay * decays[t + chunk * (s - 1)];
      decays[s + chunk * s] = S(1);
      betas[s] = tokens.beta.data == nullptr ? S(1) : *tokens.beta(s);
    }
  }
  /// α_{t+1} ⋯ α_last for every token.
  const S* until_last() const { return decays + (count - 1) * chunk; }
  S decay() const { return until[count - 1]; }

  /// weights = products of tokens t < s, or with `own` t ≤ s, with the decays between them. Others
  /// are 0, even if a product is infinite.
  void weigh(const S* products, bool own, S* weights) const {
    for (Index i = 0; i < chunk * chunk; ++i) {
      const S product = products[i];
      weights[i] = decays[i] * (decays[i] != S(0) ? product : S(0));
    }
    for (Index s = 0; s < chunk && !own; ++s) weights[s + chunk * s] = S(0);
  }
};

}  // namespace fw::detail
