#pragma once

#include <fastweights/kernels/backward/chunk_rows.hpp>
#include <fastweights/kernels/backward/correction_gradient.hpp>
#include <fastweights/kernels/scan/pair.hpp>
#include <fastweights/math/products.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Order of the corrections of a rule.
struct CorrectionLayout {
  Index per_token = 1;
  Index lookup_step = 1;  // every how many corrections one looks up; 0 if none does
  bool lookup_before_decay = false, reads_first = false;
  bool looks_up_key = false;  // whether a is b

  constexpr Index per_chunk() const { return chunk_size / per_token * per_token; }
  constexpr Index reads_per_chunk() const { return chunk_size / per_token; }
  constexpr Index lookups_per_chunk() const {
    return lookup_step == 0 ? 0 : (per_chunk() + lookup_step - 1) / lookup_step;
  }
  constexpr bool looks_up(Index s) const { return lookup_step != 0 && s % lookup_step == 0; }
  /// The number of the look-up of correction s.
  constexpr Index lookup_of(Index s) const { return lookup_step == 0 ? 0 : s / lookup_step; }
  /// The corrections of look-up and read i.
  constexpr Index lookup(Index i) const { return i * lookup_step; }
  constexpr Index read(Index i) const { return (i + 1) * per_token - 1; }
  /// Number of writes that they see.
  constexpr Index seen_by_lookup(Index i) const { return lookup(i); }
  constexpr Index seen_by_read(Index i) const { return (reads_first ? i : i + 1) * per_token; }
};

/// Events of a chunk: the matrix decays, is looked up, written, read.
enum class Event { decay, lookup, write, read };

/// Calls f(event, i, writes) for what a correction does, in order: i counts the decays, look-ups,
/// writes or reads, and `writes` the writes before.
template <CorrectionLayout layout, class F>
EIGEN_ALWAYS_INLINE void for_events_of(Index s, const F& f) {
  constexpr Index n = layout.per_token;
  const auto lookup = [&](bool before_decay) FASTWEIGHTS_INLINE_LAMBDA {
    if (layout.looks_up(s) && layout.lookup_before_decay == before_decay)
      f(Event::lookup, layout.lookup_of(s), s);
  };
  if (s % n == 0 && layout.reads_first) f(Event::read, s / n, s);
  lookup(true);
  if (s % n == 0) f(Event::decay, s / n, s);
  lookup(false);
  f(Event::write, s, s);
  if (s % n == n - 1 && !layout.reads_first) f(Event::read, s / n, s + 1);
}
/// Calls f for the events of `count` corrections.
template <CorrectionLayout layout, class F>
EIGEN_ALWAYS_INLINE void for_events(Index count, const F& f) {
  for (Index s = 0; s < count; ++s) for_events_of<layout>(s, f);
}

/// Prefetches the vectors of the next chunk, a few with every call: the number of outstanding
/// memory requests is limited.
template <class S> class ChunkPrefetch {
 public:
  /// `calls` is the number of calls of `next`.
  void start(Index calls) { calls_ = calls; }
  /// The first `count` columns of x.
  void add(const Columns<const S>& x, Index entries, Index count) {
    if (x.data == nullptr || count <= 0 || vectors_count_ == capacity) return;
    vectors_[vectors_count_++] = {x.data, x.stride, entries, count};
    total_ += count;
    per_call_ = (total_ + calls_ - 1) / calls_;
  }
  EIGEN_ALWAYS_INLINE void next() {
    for (Index i = 0; i < per_call_ && which_ < vectors_count_; ++i) {
      Vectors& v = vectors_[which_];
#if defined __GNUC__
      for (Index j = 0; j < v.entries; j += 64 / static_cast<Index>(sizeof(S)))
        __builtin_prefetch(v.data + j);
#endif
      v.data += v.stride;
      if (--v.count == 0) ++which_;
    }
  }

 private:
  struct Vectors {
    const S* data;
    Index stride, entries, count;
  };
  static constexpr Index capacity = 12;
  Vectors vectors_[capacity];
  Index vectors_count_ = 0, total_ = 0, calls_ = 1, per_call_ = 0, which_ = 0;
};

/// Buffers of a thread. `lanes` are transposed vectors.
template <class S> struct ChunkBuffers {
  // with an entry per column of W
  ChunkRows<S> keys, queries, lookups, decays, dkeys, dqueries, dlookups;
  S *key_lanes, *query_lanes, *lookup_lanes, *dkey_lanes;
  // with an entry per row of W
  ChunkRows<S> updates, dy, du, removals;
  S *update_lanes, *decayed_update_lanes, *dy_lanes, *removal_lanes;
  S* zeros;  // with an entry per row or column, whatever is more

  ChunkBuffers(Index dv, Index dk) {
    const Index of_keys = ChunkRows<S>::size_of(dk), of_values = ChunkRows<S>::size_of(dv);
    const Index of_either = std::max(of_keys, of_values);
    S* buffer = thread_buffer<S, ChunkBuffers>(11 * of_keys + 8 * of_values + of_either);
    for (ChunkRows<S>* rows : {&keys, &queries, &lookups, &decays, &dkeys, &dqueries, &dlookups}) {
      *rows = ChunkRows<S>(buffer, dk);
      buffer += of_keys;
    }
    for (ChunkRows<S>* rows : {&updates, &dy, &du, &removals}) {
      *rows = ChunkRows<S>(buffer, dv);
      buffer += of_values;
    }
    for (S** each : {&key_lanes, &query_lanes, &lookup_lanes, &dkey_lanes}) {
      *each = buffer;
      buffer += of_keys;
    }
    for (S** each : {&update_lanes, &decayed_update_lanes, &dy_lanes, &removal_lanes}) {
      *each = buffer;
      buffer += of_values;
    }
    zeros = buffer;
    std::fill_n(zeros, of_either, S(0));
  }
};

/// The decays between what happens in a chunk. With one decay per column, the vectors have the
/// decays, and these are 0 or 1. Let M be the matrix before the chunk.
template <class S> struct ChunkFactors {
  ChunkSquare<S> reads, lookups;  // from write t to read or look-up s; 0 if s does not see t
  S until_read[chunk_size], until_lookup[chunk_size];  // from M
  S until_end[chunk_size];                             // from write t
  S decay;                                             // of M in the chunk

  /// With decay_of(i) of token i. At the first token of a sequence, M has decayed already, and has
  /// nothing for what comes before the decay.
  template <CorrectionLayout layout, class F>
  void set(Index count, bool is_first, const F& decay_of) {
    auto factors = InLanes<S>::all(S(0));
    S product = S(1);
    bool decayed = !is_first;  // whether M is before the decay of the next token
    for_events<layout>(count, [&](Event event, Index i, Index) {
      if (event == Event::decay) {
        const S one = decayed ? decay_of(i) : S(1);
        decayed = true;
        product *= one;
        factors.scale(one);
      } else if (event == Event::lookup) {
        factors.store(lookups.column(i));
        until_lookup[i] = decayed ? product : S(0);
      } else if (event == Event::read) {
        factors.store(reads.column(i));
        until_read[i] = decayed ? product : S(0);
      } else {
        S write[chunk_size] = {};
        write[i] = S(1);
        factors.add(InLanes<S>::load(write));
      }
    });
    factors.store(until_end);
    decay = product;
  }
  /// Without decays.
  template <CorrectionLayout layout> static const ChunkFactors& ones(bool is_first) {
    static const ChunkFactors all[2] = {make_ones<layout>(false), make_ones<layout>(true)};
    return all[is_first ? 1 : 0];
  }

 private:
  template <CorrectionLayout layout> static ChunkFactors make_ones(bool is_first) {
    ChunkFactors f{};
    f.template set<layout>(layout.per_chunk(), is_first, [](Index) { return S(1); });
    return f;
  }
};

/// Up to `chunk_size` corrections of whole tokens.
template <class S> struct Chunk {
  CorrectionLayout layout;
  Index count, reads, lookups;
  bool is_first;  // whether the first token has decayed already
  const ChunkFactors<S>* factors;
  const S* decays = nullptr;  // of the chunk, one per column
  const S* lookup_lanes;      // with the decays from M
  const S* update_lanes;      // with the decays to the end of the chunk
  ChunkBuffers<S>& buffers;
  ChunkPrefetch<S> prefetch;
  Correction<S> corrections[chunk_size];
  S removal_scales[chunk_size];             // −1 times the factor from du to a removal, or, with
                                            // one β per row, to β ∘ du
  ChunkSquare<S> key_queries, key_lookups;  // products of b_t with q_s and a_s, with the factors
  ChunkView<S> keys, queries, looked_up;    // with one entry per column
  ChunkView<S> seen_keys;                   // as queries and look-ups of the chunk see them
  const S* until_seen = nullptr;            // decays from M to these, one per column
  ChunkView<S> dy;                          // times the scales of the reads
  const S *read_weights, *lookup_weights;   // u_t·dy_s and u_t times the removal of look-up s,
                                            // with the factors

  Chunk(const CorrectionLayout& all, Index corrections_count, bool begins,
        ChunkBuffers<S>& all_buffers)
      : layout(all),
        count(corrections_count),
        reads(count / all.per_token),
        lookups(all.lookup_step == 0 ? 0 : (count + all.lookup_step - 1) / all.lookup_step),
        is_first(begins),
        lookup_lanes(all_buffers.lookup_lanes),
        update_lanes(all_buffers.update_lanes),
        buffers(all_buffers) {}
  void set_removal_scales() {
    for (Index s = 0; s < chunk_size; ++s) {
      removal_scales[s] = S(0);
      if (s >= count || !layout.looks_up(s)) continue;
      const auto& one = corrections[s].coefficients;
      removal_scales[s] =
          -one.retrieved_scale * (corrections[s].betas == nullptr ? one.beta : S(1));
    }
  }
};

/// to[t] = factors[t] products[t]; 0 where the factor is 0, even if a product is infinite.
template <class S>
EIGEN_ALWAYS_INLINE void multiply_columns(const S* products, const S* factors, S* to) {
  auto weighed = InLanes<S>::load(products);
  weighed.scale_where_nonzero(InLanes<S>::load(factors));
  weighed.store(to);
}

}  // namespace fw::detail
