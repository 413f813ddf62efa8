#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/kernels/backward/chunk.hpp>
#include <fastweights/kernels/scan/matrix_pass.hpp>
#include <fastweights/kernels/scan/panels.hpp>
#include <fastweights/kernels/simd/register_products.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Work of both passes on R packets of rows of their matrix M.
template <class S, int R> class ChunkPanel {
 protected:
  using Column = Rows<S, R>;
  static constexpr Index size = Column::size;
  using Sums = RegisterTuple<Column, 4>;  // of four vectors

  ChunkPanel(const Panel<S>& panel, Index columns, Chunk<S>& c)
      : first_(panel.first),
        rows_(panel.rows),
        columns_(columns),
        matrix_(panel.data),
        c_(c),
        b_(c.buffers) {}

  /// sums = M times vectors t … t + 3
  EIGEN_ALWAYS_INLINE void set_products(Sums& sums, const S* vectors, Index t) {
    set_zero<S>(sums);
    add_product(sums, LeftFactor<S>{matrix_, size}, RightFactor<S>{vectors + t, chunk_size, 1},
                columns_);
    c_.prefetch.next();
  }
  /// Calls update(columns, j) for some columns of M from j on.
  template <class F> EIGEN_ALWAYS_INLINE void update_matrix(const F& update) {
    for_columns<4>(columns_, [&](Index j, auto N) {
      RegisterTuple<Column, N()> part;
      load(part, matrix_ + j * size, size);
      update(part, j);
      store(part, matrix_ + j * size, size);
      c_.prefetch.next();
    });
  }
  /// sums += Σ_t x_t y_t for t < count, with the entries of y from j on.
  template <int N>
  EIGEN_ALWAYS_INLINE void add_updates(RegisterTuple<Column, N>& sums, const ChunkView<S>& x,
                                       const S* y, Index j, Index count) {
    add_product(sums, LeftFactor<S>{x[0] + first_, x.stride},
                RightFactor<S>{y + j * chunk_size, 1, chunk_size}, count);
  }

  const Index first_, rows_, columns_;
  S* const matrix_;
  Chunk<S>& c_;
  ChunkBuffers<S>& b_;
};

/// The backward pass over G: computes du and the removals, and adds Gᵀu to the keys' gradients.
template <class S, int R, bool HasLookups> class ChunkGradients : ChunkPanel<S, R> {
 public:
  /// Not inline: programs that link fastweights::compiled do not compile it again.
  static EIGEN_DONT_INLINE void run(const Panel<S>& panel, Index columns, Chunk<S>& c) {
    ChunkGradients(panel, columns, c).run();
  }

 private:
  using Base = ChunkPanel<S, R>;
  using Base::size, Base::first_, Base::c_, Base::b_, Base::Base;
  using typename Base::Column, typename Base::Sums;

  EIGEN_ALWAYS_INLINE void run() {
    for (Index t = (c_.count - 1) / 4 * 4; t >= 0; t -= 4) set_update_gradients(t);
    add_key_gradients();
    this->update_matrix([&](auto& columns, Index j) FASTWEIGHTS_INLINE_LAMBDA {
      decay(columns, j);
      this->add_updates(columns, c_.dy, b_.query_lanes, j, c_.reads);
      if constexpr (HasLookups)
        this->add_updates(columns, b_.removals, c_.lookup_lanes, j, c_.lookups);
    });
  }
  template <int N>
  EIGEN_ALWAYS_INLINE void decay(RegisterTuple<Column, N>& columns, Index j) const {
    if (c_.decays != nullptr)
      for_parts(columns, [&](Column& column, Index i) { column.scale(c_.decays[j + i]); });
    else if (c_.factors->decay != S(1))
      for_parts(columns, [&](Column& column, Index) { column.scale(c_.factors->decay); });
  }

  // The gradients of four updates from t on. Those of later updates are there already.
  EIGEN_ALWAYS_INLINE void set_update_gradients(Index t) {
    Sums du;
    this->set_products(du, b_.key_lanes, t);
    add_weighted(du, c_.dy, c_.key_queries, t, t / c_.layout.per_token, c_.reads);
    if constexpr (HasLookups) {
      const Index step = c_.layout.lookup_step;
      add_weighted(du, b_.removals, c_.key_lookups, t, (t + 4 + step - 1) / step, c_.lookups);
      Column &du1 = du.first.first.only, &du2 = du.first.second.only, &du3 = du.second.first.only,
             &du4 = du.second.second.only;
      finish(du4, t + 3);
      add(du3, du4, t + 2, t + 3);
      finish(du3, t + 2);
      add(du2, du4, t + 1, t + 3);
      add(du2, du3, t + 1, t + 2);
      finish(du2, t + 1);
      add(du1, du4, t, t + 3);
      add(du1, du3, t, t + 2);
      add(du1, du2, t, t + 1);
      finish(du1, t);
    } else {
      for_parts(du, [&](const Column& one, Index i) { one.store(b_.du[t + i] + first_); });
    }
  }
  // du of four updates from t on += Σ_s weights x_s for s from `begin` to `end`.
  EIGEN_ALWAYS_INLINE void add_weighted(Sums& du, const ChunkView<S>& x,
                                        const ChunkSquare<S>& weights, Index t, Index begin,
                                        Index end) const {
    add_product(du, LeftFactor<S>{x[begin] + first_, x.stride},
                RightFactor<S>{weights.column(begin) + t, chunk_size, 1}, end - begin);
  }
  // Stores du and replaces it by the removal of the correction's look-up, 0 if it has none.
  EIGEN_ALWAYS_INLINE void finish(Column& du, Index t) const {
    du.store(b_.du[t] + first_);
    if (t < c_.count && c_.corrections[t].betas != nullptr)
      du.scale(load_part<Column>(c_.corrections[t].betas + first_, 0, this->rows_));
    du.scale(c_.removal_scales[t]);
    if (c_.layout.looks_up(t)) du.store(b_.removals[c_.layout.lookup_of(t)] + first_);
  }
  // du of update t += its share of the removal of correction s.
  EIGEN_ALWAYS_INLINE void add(Column& du, const Column& removal, Index t, Index s) const {
    du.add(removal, c_.key_lookups.column(c_.layout.lookup_of(s))[t]);
  }

  // Has the updates in SIMD lanes, so that it needs no transposed matrix.
  EIGEN_ALWAYS_INLINE void add_key_gradients() {
    for_columns<8>(this->columns_, [&](Index j, auto N) {
      RegisterTuple<InLanes<S>, N()> sums;
      S* const to = b_.dkey_lanes + j * chunk_size;
      load(sums, to, chunk_size);
      add_product(sums, LeftFactor<S>{c_.update_lanes + first_ * chunk_size, chunk_size},
                  RightFactor<S>{this->matrix_ + j * size, 1, size}, this->rows_);
      store(sums, to, chunk_size);
      c_.prefetch.next();
    });
  }
};

/// The forward pass over Wᵀ: computes Wᵀdy and Wᵀ times the removals for W before the chunk.
template <class S, int R, bool HasLookups> class ChunkQueries : ChunkPanel<S, R> {
 public:
  static EIGEN_DONT_INLINE void run(const Panel<S>& panel, Index columns, Chunk<S>& c) {
    ChunkQueries(panel, columns, c).run();
  }

 private:
  using Base = ChunkPanel<S, R>;
  using Base::first_, Base::c_, Base::b_, Base::Base;
  using typename Base::Column, typename Base::Sums;

  EIGEN_ALWAYS_INLINE void run() {
    const CorrectionLayout& layout = c_.layout;
    set_gradients(b_.dy_lanes, c_.reads, b_.dqueries, c_.factors->until_read, c_.read_weights,
                  [&](Index t) { return layout.seen_by_read(t); });
    if constexpr (HasLookups)
      set_gradients(b_.removal_lanes, c_.lookups, b_.dlookups, c_.factors->until_lookup,
                    c_.lookup_weights, [&](Index t) { return layout.seen_by_lookup(t); });
    const bool decays = c_.decays != nullptr || c_.factors->decay != S(1);
    const Column decay =
        c_.decays != nullptr ? Column::load(c_.decays + first_) : Column::all(c_.factors->decay);
    this->update_matrix([&](auto& columns, Index j) FASTWEIGHTS_INLINE_LAMBDA {
      if (decays) for_parts(columns, [&](Column& column, Index) { column.scale(decay); });
      this->add_updates(columns, c_.keys, c_.update_lanes, j, c_.count);
    });
  }
  // to_t = until_t M vector_t + Σ_s weights_ts k_s, where t has seen(t) writes. There are four at a
  // time; nobody reads those from `count` on.
  template <class F>
  EIGEN_ALWAYS_INLINE void set_gradients(const S* vectors, Index count, const ChunkRows<S>& to,
                                         const S* until, const S* weights, const F& seen) {
    for (Index t = 0; t < count; t += 4) {
      Sums sums;
      this->set_products(sums, vectors, t);
      for_parts(sums, [&](Column& sum, Index i) { scale_or_clear(sum, until[t + i]); });
      if (c_.until_seen != nullptr) {
        const Column decays = Column::load(c_.until_seen + first_);
        for_parts(sums, [&](Column& sum, Index) { sum.scale(decays); });
      }
      add_product(sums, LeftFactor<S>{c_.seen_keys[0] + first_, c_.seen_keys.stride},
                  RightFactor<S>{weights + chunk_size * t, 1, chunk_size},
                  std::min(seen(t + 3), c_.count));
      for_parts(sums, [&](const Column& sum, Index i) { sum.store(to[t + i] + first_); });
    }
  }
  // 0 for a decay of 0, even if x is infinite.
  static EIGEN_ALWAYS_INLINE void scale_or_clear(Column& x, S factor) {
    if (factor == S(0))
      x = Column::all(S(0));
    else if (factor != S(1))
      x.scale(factor);
  }
};

}  // namespace fw::detail
