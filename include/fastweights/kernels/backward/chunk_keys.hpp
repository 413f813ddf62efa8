#pragma once

#include <fastweights/kernels/backward/chunk.hpp>

/// \file
/// The work of a chunk that concerns vectors with one entry per column of W: keys, queries, look-up
/// keys and their gradients. What the passes over the matrices do is in chunk_panels.hpp.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// u_t·dy_s and u_t times the removal of look-up s, with the decays between them.
template <class S> struct ErrorProducts {
  S* all;
  S* with_dy(Index s) const { return all + chunk_size * s; }
  S* with_removal(Index s) const { return all + chunk_size * (chunk_size + s); }
};

/// No decay, or one per token.
template <CorrectionLayout layout, DecayKind decay_kind, class S> class ChunkKeys {
 public:
  explicit ChunkKeys(Index) {}

  /// For the backward pass: keys, queries and look-ups in lanes, and their products.
  void set(Chunk<S>& c) const {
    auto& b = c.buffers;
    const Index n = b.keys.entries();
    const auto& f = *c.factors;
    transpose_to_lanes({c.count, b.zeros, n, [&](Index s) { return c.corrections[s].key; }},
                       b.key_lanes);
    c.queries = b.queries.template view<layout.reads_per_chunk()>(
        c.reads, [&](Index i) { return c.corrections[layout.read(i)].query; });
    transpose_to_lanes<S>(c.queries, b.query_lanes);
    set_products(c, c.queries, c.reads, f.reads, c.key_queries);
    if constexpr (layout.lookup_step > 0) {
      c.looked_up = b.lookups.template view<layout.lookups_per_chunk()>(
          c.lookups, [&](Index i) { return c.corrections[layout.lookup(i)].lookup; });
      set_products(c, c.looked_up, c.lookups, f.lookups, c.key_lookups);
      if constexpr (layout.looks_up_key && decay_kind == DecayKind::none)
        c.lookup_lanes = b.key_lanes;
      else if constexpr (layout.looks_up_key)
        scale_lanes(b.key_lanes, f.until_lookup, n, b.lookup_lanes);
      else
        transpose_to_lanes<S>(c.looked_up, b.lookup_lanes, f.until_lookup);
    }
    if constexpr (decay_kind == DecayKind::none) return;
    scale_lanes(b.key_lanes, f.until_end, n, b.key_lanes);
    scale_lanes(b.query_lanes, f.until_read, n, b.query_lanes);
  }
  /// The keys' gradients, from Gᵀu in lanes.
  void set_gradients(const Chunk<S>& c, const ErrorProducts<S>& products) const {
    auto& b = c.buffers;
    transpose_from_lanes(b.dkey_lanes, b.dkeys);
    b.dkeys.add_products(products.with_dy(0), c.queries, c.reads, [](Index t) {
      return t / layout.per_token + (layout.reads_first ? 1 : 0);
    });
    if constexpr (layout.lookup_step > 0)
      b.dkeys.add_products(products.with_removal(0), c.looked_up, c.lookups,
                           [](Index t) { return t / layout.lookup_step + 1; });
  }
  /// For the forward pass: the keys. With the products ChunkQueries sets all gradients of queries
  /// and look-ups.
  void set_rows(Chunk<S>& c, const ErrorProducts<S>& products) const {
    c.read_weights = products.with_dy(0);
    c.lookup_weights = products.with_removal(0);
    c.keys = c.buffers.keys.template view<layout.per_chunk()>(
        c.count, [&](Index s) { return c.corrections[s].key; });
  }

 private:
  void set_products(Chunk<S>& c, const ChunkView<S>& x, Index count, const ChunkSquare<S>& factors,
                    ChunkSquare<S>& to) const {
    set_lane_products(c.buffers.key_lanes, x, count, to);
    for (Index i = 0; i < count; ++i)
      multiply_columns(to.column(i), factors.column(i), to.column(i));
    std::fill(to.column(count), to.column(chunk_size), S(0));
  }
};

/// One decay per column: goes through what happens in order, and decays the keys.
template <CorrectionLayout layout, class S> class ChunkKeys<layout, DecayKind::per_channel, S> {
 public:
  explicit ChunkKeys(Index columns)
      : decays_(thread_buffer<S, ChunkKeys>(ChunkRows<S>::padded(columns))) {}

  void set(Chunk<S>& c) const {
    auto& b = c.buffers;
    const auto set_one = [&](const ChunkRows<S>& rows, const ChunkRows<S>& decayed, Index i,
                             const S* x, S until, const S* factors, S* to) {
      S products[chunk_size];
      rows.set(i, x);
      set_key_products(b.keys, rows[i], products);
      multiply_columns(products, factors, to);
      if (until == S(0))
        decayed.clear(i);
      else
        decayed.set_product(i, rows[i], decays_);
    };
    decay_keys(c, [&](Event event, Index i, Index) {
      if (event == Event::read)
        set_one(b.queries, b.dqueries, i, c.corrections[layout.read(i)].query,
                c.factors->until_read[i], c.factors->reads.column(i), c.key_queries.column(i));
      else if (event == Event::lookup)
        set_one(b.lookups, b.dlookups, i, c.corrections[layout.lookup(i)].lookup,
                c.factors->until_lookup[i], c.factors->lookups.column(i), c.key_lookups.column(i));
    });
    std::fill(c.key_lookups.column(c.lookups), c.key_lookups.column(chunk_size), S(0));
    transpose_to_lanes<S>(b.keys, b.key_lanes);
    transpose_to_lanes<S>(b.dqueries, b.query_lanes);
    if constexpr (layout.lookup_step > 0) transpose_to_lanes<S>(b.dlookups, b.lookup_lanes);
  }
  void set_gradients(const Chunk<S>& c, const ErrorProducts<S>& products) const {
    auto& b = c.buffers;
    transpose_from_lanes(b.dkey_lanes, b.dkeys);
    for_events_backward<layout>(c.count, [&](Event event, Index i, Index seen) {
      if (event == Event::read)
        b.dkeys.add_to_all(seen, b.queries[i], products.with_dy(i));
      else if (event == Event::lookup)
        b.dkeys.add_to_all(seen, b.lookups[i], products.with_removal(i));
      else if (event == Event::decay)
        b.dkeys.scale_all(seen, b.decays[i]);
    });
  }
  void set_rows(Chunk<S>& c, const ErrorProducts<S>&) const {
    decay_keys(c, [](Event, Index, Index) {});
  }
  /// The gradients of queries and look-ups, from their products with the matrix before the chunk.
  void add_read_gradients(Chunk<S>& c, const ErrorProducts<S>& products) const {
    auto& b = c.buffers;
    const auto add = [&](const ChunkRows<S>& to, Index i, S until, Index seen, const S* weights) {
      if (until == S(0))
        to.clear(i);
      else
        to.set_product(i, to[i], decays_);
      b.keys.add_sum(seen, weights, to[i]);
    };
    decay_keys(c, [&](Event event, Index i, Index seen) {
      if (event == Event::read)
        add(b.dqueries, i, c.factors->until_read[i], seen, products.with_dy(i));
      else if (event == Event::lookup)
        add(b.dlookups, i, c.factors->until_lookup[i], seen, products.with_removal(i));
    });
  }

 private:
  // products[t] = k_t·x. Keys that are not there yet are 0.
  static void set_key_products(const ChunkRows<S>& keys, const S* x, S* products) {
    static_assert(chunk_size == 8);
    dot_products({keys[0], keys[1], keys[2], keys[3], keys[4], keys[5], keys[6], keys[7]},
                 {x, x, x, x, x, x, x, x}, keys.entries(), products);
  }

  // Calls f(event, i, writes) for every event. The keys in `buffers.keys` and the decays from the
  // matrix before the chunk have the decays up to then.
  template <class F> void decay_keys(Chunk<S>& c, const F& f) const {
    auto& b = c.buffers;
    const Index n = b.keys.entries();
    for (Index s = 0; s < chunk_size; ++s) b.keys.clear(s);
    std::fill_n(decays_, ChunkRows<S>::padded(n), S(1));
    bool decayed = !c.is_first;
    for_events<layout>(c.count, [&](Event event, Index i, Index seen) {
      if (event == Event::write) {
        b.keys.set(i, c.corrections[i].key);
      } else if (event == Event::decay) {
        const S* const decays = c.corrections[i * layout.per_token].decays;
        if (decayed && decays != nullptr) {
          b.decays.set(i, decays);
          b.keys.scale_all(seen, b.decays[i]);
          for (Index j = 0; j < n; ++j) decays_[j] *= decays[j];
        } else {
          std::fill_n(b.decays[i], n, S(1));
        }
        decayed = true;
      }
      f(event, i, seen);
    });
    c.keys = b.keys;
    c.decays = decays_;
  }

  S* decays_;  // from the matrix before the chunk
};

}  // namespace fw::detail
