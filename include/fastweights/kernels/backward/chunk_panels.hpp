#pragma once

#include <fastweights/kernels/backward/chunk.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// What both passes do with R packets of rows of their matrix.
template <class S, int R> class ChunkPanel {
 protected:
  using Column = Rows<S, R>;
  static constexpr Index size = Column::size;
  using Sums = Group<Column, 4>;  // of four tokens

  ChunkPanel(const Panel<S>& panel, Index columns, Chunk<S>& c)
      : first_(panel.first),
        rows_(panel.rows),
        columns_(columns),
        n_(c.count),
        matrix_(panel.data),
        c_(c),
        x_(c.tokens),
        b_(c.buffers) {}

  /// The matrix times vectors t … t + 3, times the decay of each.
  EIGEN_ALWAYS_INLINE void set_products(Sums& sums, const S* vectors, Index t, const S* decays) {
    set_zero<S>(sums);
    add_product(sums, LeftFactor<S>{matrix_, size}, RightFactor<S>{vectors + t, chunk, 1},
                columns_);
    for_parts(sums, [&](Column& sum, Index i) { sum.scale(decays[t + i]); });
    c_.prefetch.next();
  }
  EIGEN_ALWAYS_INLINE Column load_rows(const S* from) const {
    return load_part<Column>(from + first_, 0, rows_);
  }
  EIGEN_ALWAYS_INLINE void add_rows(S* to, const Column& x, S factor) const {
    Column sum = load_rows(to);
    sum.add(x, factor);
    store_part(sum, to + first_, 0, rows_);
  }
  EIGEN_ALWAYS_INLINE void scale(S* vectors, Index t, S factor) const {
    Column x = Column::load(vectors + t * size);
    x.scale(factor);
    x.store(vectors + t * size);
  }
  /// The matrix decays, then calls add(columns, j) for some columns from j on.
  template <class F> EIGEN_ALWAYS_INLINE void update_matrix(const F& add) {
    for_columns<4>(columns_, [&](Index j, auto N) {
      Group<Column, N()> part;
      load(part, matrix_ + j * size, size);
      if (c_.decay() != S(1))
        for_parts(part, [&](Column& column, Index) { column.scale(c_.decay()); });
      add(part, j);
      store(part, matrix_ + j * size, size);
      c_.prefetch.next();
    });
  }
  /// sums += Σ_s x_s y_s, with the columns of y from j on.
  template <int N>
  EIGEN_ALWAYS_INLINE void add_updates(Group<Column, N>& sums, const S* x, const S* y, Index j) {
    add_product(sums, LeftFactor<S>{x, size}, RightFactor<S>{y + j * chunk, 1, chunk}, n_);
  }

  const Index first_, rows_, columns_, n_;
  S* const matrix_;
  Chunk<S>& c_;
  const BackwardTokens<S>& x_;
  ChunkBuffers<S>& b_;
};

/// The backward pass over G: computes du and dv and adds GᵀE to dk, and the products of errors.
template <class S, int R, bool HasDeltaTerm> class ChunkGradients : ChunkPanel<S, R> {
 public:
  /// Not inline: programs that link fastweights::compiled do not compile it again.
  static EIGEN_DONT_INLINE void run(const Panel<S>& panel, Index columns, Chunk<S>& c) {
    ChunkGradients(panel, columns, c).run();
  }

 private:
  using Base = ChunkPanel<S, R>;
  using Base::size, Base::first_, Base::rows_, Base::n_, Base::c_, Base::x_, Base::b_;
  using typename Base::Column, typename Base::Sums;

  ChunkGradients(const Panel<S>& panel, Index columns, Chunk<S>& c)
      : Base(panel, columns, c), dy_(c.buffers.panel_one), du_(c.buffers.panel_two) {}

  EIGEN_ALWAYS_INLINE void run() {
    for (Index s = 0; s < n_; ++s) this->load_rows(x_.dy(s)).store(dy_ + s * size);
    for (Index t = (n_ - 1) / 4 * 4; t >= 0; t -= 4) set_update_gradients(t);
    add_error_products(b_.error_dys, dy_, n_);
    if constexpr (HasDeltaTerm) add_error_products(b_.error_dus, du_, n_);
    add_error_products(b_.dk, this->matrix_, this->columns_);
    for (Index s = 0; s < n_; ++s) {
      this->scale(dy_, s, c_.until[s]);
      if constexpr (HasDeltaTerm) this->scale(du_, s, -c_.betas[s] * c_.until[s]);
    }
    this->update_matrix([&](auto& columns, Index j) FASTWEIGHTS_INLINE_LAMBDA {
      this->add_updates(columns, dy_, b_.queries, j);
      if constexpr (HasDeltaTerm) this->add_updates(columns, du_, b_.keys, j);
    });
  }

  // The later tokens come first.
  EIGEN_ALWAYS_INLINE void set_update_gradients(Index t) {
    Sums du;
    this->set_products(du, b_.keys, t, c_.until_last());
    add_weighted(du, dy_, b_.key_queries, t, t);
    if constexpr (HasDeltaTerm) {
      if (t + 4 < n_) add_weighted(du, du_, b_.key_keys, t, t + 4);
      const auto add = [&](Column& to, const Column& from, Index i, Index j) {
        to.add(from, b_.key_keys[t + i + chunk * (t + j)]);
      };
      Column &du1 = du.first.first.only, &du2 = du.first.second.only, &du3 = du.second.first.only,
             &du4 = du.second.second.only;
      add(du3, du4, 2, 3);
      add(du2, du4, 1, 3);
      add(du1, du4, 0, 3);
      add(du2, du3, 1, 2);
      add(du1, du3, 0, 2);
      add(du1, du2, 0, 1);
    }
    for_parts(du, [&](const Column& one, Index i) {
      if (t + i < n_) set_update_gradient(t + i, one);
    });
  }
  // du of four tokens from t on += Σ_s x_s weight, for tokens s from `begin` on.
  EIGEN_ALWAYS_INLINE void add_weighted(Sums& du, const S* x, const S* weights, Index t,
                                        Index begin) const {
    add_product(du, LeftFactor<S>{x + begin * size, size},
                RightFactor<S>{weights + t + chunk * begin, chunk, 1}, n_ - begin);
  }
  EIGEN_ALWAYS_INLINE void set_update_gradient(Index t, const Column& du) const {
    if constexpr (HasDeltaTerm) {
      du.store(du_ + t * size);
      store_part(du, x_.du(t) + first_, 0, rows_);
    }
    this->add_rows(x_.dv(t), du, c_.betas[t]);
  }
  // to += EᵀX for columns of X in the rows of the panel.
  EIGEN_ALWAYS_INLINE void add_error_products(S* to, const S* x, Index columns) const {
    for_columns<8>(columns, [&](Index j, auto N) {
      Group<OfTokens<S>, N()> sums;
      load(sums, to + j * chunk, chunk);
      add_product(sums, LeftFactor<S>{b_.errors + first_ * chunk, chunk},
                  RightFactor<S>{x + j * size, 1, size}, rows_);
      store(sums, to + j * chunk, chunk);
      c_.prefetch.next();
    });
  }

  S *const dy_, *const du_;
};

/// The forward pass over Wᵀ: adds to dq and dk.
template <class S, int R, bool HasDeltaTerm> class ChunkQueries : ChunkPanel<S, R> {
 public:
  static EIGEN_DONT_INLINE void run(const Panel<S>& panel, Index columns, Chunk<S>& c) {
    ChunkQueries(panel, columns, c).run();
  }

 private:
  using Base = ChunkPanel<S, R>;
  using Base::size, Base::n_, Base::c_, Base::x_, Base::b_;
  using typename Base::Column, typename Base::Sums;

  ChunkQueries(const Panel<S>& panel, Index columns, Chunk<S>& c)
      : Base(panel, columns, c), keys_(c.buffers.panel_one) {}

  EIGEN_ALWAYS_INLINE void run() {
    for (Index s = 0; s < n_; ++s) {
      this->load_rows(x_.k(s)).store(keys_ + s * size);
      this->scale(keys_, s, c_.betas[s]);
    }
    for (Index t = 0; t < n_; t += 4) {
      add_gradients(t, b_.dy, b_.error_dys,
                    [&](Index i, const Column& dq)
                        FASTWEIGHTS_INLINE_LAMBDA { add(x_.dq(i), dq, S(1), x_.q(i), i); });
      if constexpr (HasDeltaTerm)
        add_gradients(t, b_.du, b_.error_dus,
                      [&](Index i, const Column& dk) FASTWEIGHTS_INLINE_LAMBDA {
                        add(x_.dk(i), dk, -c_.betas[i], x_.k(i), i);
                      });
    }
    for (Index s = 0; s < n_; ++s) this->scale(keys_, s, c_.until_last()[s]);
    this->update_matrix([&](auto& columns, Index j) FASTWEIGHTS_INLINE_LAMBDA {
      this->add_updates(columns, keys_, b_.errors, j);
    });
  }

  // Calls put(i, Wᵢᵀ yᵢ) for up to four tokens from t on.
  template <class F>
  EIGEN_ALWAYS_INLINE void add_gradients(Index t, const S* y, const S* weights, const F& put) {
    Sums sums;
    this->set_products(sums, y, t, c_.until);
    add_product(sums, LeftFactor<S>{keys_, size}, RightFactor<S>{weights + t * chunk, 1, chunk},
                std::min(t + 4, n_));
    for_parts(sums, [&](const Column& sum, Index i) FASTWEIGHTS_INLINE_LAMBDA {
      if (t + i < n_) put(t + i, sum);
    });
  }
  // gradient += factor dx, and x·(factor dx) is a term of the decays' gradient.
  EIGEN_ALWAYS_INLINE void add(S* gradient, Column dx, S factor, const S* x, Index t) const {
    this->add_rows(gradient, dx, factor);
    if (x_.decay_terms.data == nullptr) return;
    dx.scale(this->load_rows(x));
    *x_.decay_terms(t) += factor * dx.sum();
  }

  S* const keys_;
};

}  // namespace fw::detail
