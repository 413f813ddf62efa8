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

/// The products of the keys in lanes with queries or look-ups, with the decays between them.
template <class S>
void set_key_products(const Chunk<S>& c, const ChunkView<S>& x, Index count,
                      const ChunkSquare<S>& factors, ChunkSquare<S>& to) {
  set_lane_products(c.buffers.key_lanes, x, count, to);
  for (Index i = 0; i < count; ++i) multiply_columns(to.column(i), factors.column(i), to.column(i));
  std::fill(to.column(count), to.column(chunk_size), S(0));
}
/// Adds what a chunk's queries and look-ups contribute to the gradients of its keys.
template <CorrectionLayout layout, class S>
void add_key_gradients(const Chunk<S>& c, const ErrorProducts<S>& products) {
  const ChunkRows<S>& dkeys = c.buffers.dkeys;
  dkeys.add_products(products.with_dy(0), c.queries, c.reads,
                     [](Index t) { return t / layout.per_token + (layout.reads_first ? 1 : 0); });
  if constexpr (layout.lookup_step > 0)
    dkeys.add_products(products.with_removal(0), c.looked_up, c.lookups,
                       [](Index t) { return t / layout.lookup_step + 1; });
}

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
    set_key_products(c, c.queries, c.reads, f.reads, c.key_queries);
    if constexpr (layout.lookup_step > 0) {
      c.looked_up = b.lookups.template view<layout.lookups_per_chunk()>(
          c.lookups, [&](Index i) { return c.corrections[layout.lookup(i)].lookup; });
      set_key_products(c, c.looked_up, c.lookups, f.lookups, c.key_lookups);
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
    add_key_gradients<layout>(c, products);
  }
  /// For the forward pass: the keys. With the products ChunkQueries sets all gradients of queries
  /// and look-ups.
  void set_rows(Chunk<S>& c, const ErrorProducts<S>& products) const {
    c.read_weights = products.with_dy(0);
    c.lookup_weights = products.with_removal(0);
    c.keys = c.buffers.keys.template view<layout.per_chunk()>(
        c.count, [&](Index s) { return c.corrections[s].key; });
    c.seen_keys = c.keys;
  }
};

/// One decay per column. Let D be the product of the decays since the middle of the chunk, or
/// divided by the decays until then. With D times the queries and look-ups, and the keys divided by
/// D, nothing decays within a chunk. D is neither large nor near 0 (decay_backward.hpp).
template <CorrectionLayout layout, class S> class ChunkKeys<layout, DecayKind::per_channel, S> {
 public:
  explicit ChunkKeys(Index columns)
      : inverses_(thread_buffer<S, Inverses>(ChunkRows<S>::size_of(columns)), columns),
        own_(thread_buffer<S, Own>(ChunkRows<S>::size_of(columns)), columns) {}

  void set(Chunk<S>& c) const {
    auto& b = c.buffers;
    const Index n = b.keys.entries();
    const auto set_one = [&](const ChunkRows<S>& to, Index i, const S* x, S until,
                             const S* decays) {
      if (until == S(0))
        to.clear(i);
      else
        to.set_product(i, x, decays);
    };
    decay_keys(c, [&](Event event, Index i, const S* decays) {
      if (event == Event::read)
        set_one(b.queries, i, c.corrections[layout.read(i)].query, c.factors->until_read[i],
                decays);
      else if (event == Event::lookup)
        set_one(b.lookups, i, c.corrections[layout.lookup(i)].lookup, c.factors->until_lookup[i],
                decays);
    });
    c.queries = b.queries;
    c.looked_up = b.lookups;
    transpose_to_lanes<S>(b.keys, b.key_lanes);
    transpose_to_lanes<S>(b.queries, b.query_lanes);
    set_key_products(c, c.queries, c.reads, c.factors->reads, c.key_queries);
    if constexpr (layout.lookup_step > 0) {
      transpose_to_lanes<S>(b.lookups, b.lookup_lanes);
      set_key_products(c, c.looked_up, c.lookups, c.factors->lookups, c.key_lookups);
      scale_each_lane(b.lookup_lanes, middle(), n);
    }
    scale_each_lane(b.query_lanes, middle(), n);
    scale_each_lane(b.key_lanes, last(c), n);
  }
  void set_gradients(const Chunk<S>& c, const ErrorProducts<S>& products) const {
    auto& b = c.buffers;
    transpose_from_lanes(b.dkey_lanes, b.dkeys);
    b.dkeys.scale_all(c.count, last(c));
    add_key_gradients<layout>(c, products);
    for (Index s = 0; s < c.count; ++s)
      b.dkeys.set_product(s, b.dkeys[s], inverses_[s / layout.per_token]);
  }
  void set_rows(Chunk<S>& c, const ErrorProducts<S>& products) const {
    const auto& b = c.buffers;
    decay_keys(c, [](Event, Index, const S*) {});
    for (Index s = 0; s < c.count; ++s) b.queries.set_product(s, b.keys[s], last(c));
    c.keys = b.queries;
    c.seen_keys = b.keys;
    c.until_seen = middle();
    c.read_weights = products.with_dy(0);
    c.lookup_weights = products.with_removal(0);
  }
  /// Decays the gradients of queries and look-ups.
  void decay_read_gradients(const Chunk<S>& c) const {
    auto& b = c.buffers;
    for_decays(c, [&](Event event, Index i, const S* decays) {
      if (event == Event::read)
        b.dqueries.set_product(i, b.dqueries[i], decays);
      else if (event == Event::lookup)
        b.dlookups.set_product(i, b.dlookups[i], decays);
    });
  }

 private:
  struct Inverses;
  struct Own;

  S* start() const { return own_[0]; }   // D before the chunk
  S* middle() const { return own_[1]; }  // the decays from there to the middle
  S* all() const { return own_[2]; }     // … to the end
  static const S* last(const Chunk<S>& c) { return c.buffers.decays[c.reads - 1]; }  // D at the end

  // Calls f(event, i, D) for every event.
  template <class F> void for_decays(const Chunk<S>& c, const F& f) const {
    const S* decays = start();
    for_events<layout>(c.count, [&](Event event, Index i, Index) {
      if (event == Event::decay) decays = c.buffers.decays[i];
      f(event, i, decays);
    });
  }
  // The decays of token i, or null.
  static const S* decays_of(const Chunk<S>& c, Index i) {
    return i == 0 && c.is_first ? nullptr : c.corrections[i * layout.per_token].decays;
  }
  void set_middle(const Chunk<S>& c) const {
    const Index n = own_.entries();
    std::fill_n(middle(), n, S(1));
    for (Index i = 0; i < c.reads / 2; ++i)
      if (const S* const decays = decays_of(c, i); decays != nullptr)
        own_.set_product(1, middle(), decays);
    invert(middle(), start(), n);
  }
  static void invert(S* x, S* inverse, Index n) {
    using Vector = Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>>;
    Vector(inverse, n) = Vector(x, n).inverse();
  }

  // Sets D and the keys, and calls f as for_decays does.
  template <class F> void decay_keys(Chunk<S>& c, const F& f) const {
    auto& b = c.buffers;
    set_middle(c);
    const S* before = start();
    for_decays(c, [&](Event event, Index i, const S* decays) {
      if (event == Event::decay) {
        const S* const given = decays_of(c, i);
        if (given != nullptr)
          b.decays.set_product(i, before, given);
        else
          b.decays.set(i, before);
        invert(b.decays[i], inverses_[i], b.keys.entries());
        before = decays;
      } else if (event == Event::write) {
        b.keys.set_product(i, c.corrections[i].key, inverses_[i / layout.per_token]);
      }
      f(event, i, decays);
    });
    for (Index s = c.count; s < chunk_size; ++s) b.keys.clear(s);
    own_.set_product(2, middle(), last(c));
    c.decays = all();
  }

  ChunkRows<S> inverses_;  // of D after the decay of every token
  ChunkRows<S> own_;
};

}  // namespace fw::detail
