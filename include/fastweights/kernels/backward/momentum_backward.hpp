#pragma once

#include <fastweights/kernels/backward/correction_gradient.hpp>
#include <fastweights/kernels/scan/momentum_scan.hpp>
#include <vector>

/// \file
/// The backward pass of a rule with momentum. With G the gradient of W after a token's read, and H
/// that of M,
///
///     H ← H + c G       dc = Σ M_t ∘ G       db = Σ W_{t−1} ∘ G       G ← b G
///     du = H k          dk = Hᵀ u            da = Σ M_{t−1} ∘ H       H ← a H
///     ds = (v − W_{t−1} p)·du     dv = s du     dp = −W_{t−1}ᵀ dv     G ← G − dv pᵀ
///
/// Rows do not meet but in sums, so a panel of rows goes through a block of tokens: forward, where
/// it keeps W and M before every token, then backward, with one pass over the matrices a token. The
/// last line of a token waits for the pass of the token before it, which has the same W.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The gradients of what a token writes to a rule with momentum.
template <class S> struct MomentumGradient {
  S rate = S(0), momentum = S(0), keep = S(0), write = S(0);
  const S *key = nullptr, *value = nullptr, *lookup = nullptr;
};

/// The gradients of a block. A vector has a packet for every entry, the sum of whose lanes it is.
template <class S> struct BlockGradients {
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  Matrix keys, lookups, queries;  // columns are tokens, in packets
  Matrix values;                  // columns are tokens
  std::array<MomentumGradient<S>, std::size_t(momentum_block)> writes;

  BlockGradients(Index dk, Index dv)
      : keys(dk * lanes<S>, momentum_block),
        lookups(dk * lanes<S>, momentum_block),
        queries(dk * lanes<S>, momentum_block),
        values(dv, momentum_block) {}
  void clear() {
    keys.setZero(), lookups.setZero(), queries.setZero();
    writes.fill({});
  }
  /// The sums of a column's packets, which overwrite its first entries.
  static const S* sum(Matrix& packets, Index i) {
    S* const column = &packets(0, i);
    for (Index j = 0; j < packets.rows() / lanes<S>; ++j)
      column[j] = Rows<S, 1>::load(column + j * lanes<S>).sum();
    return column;
  }
};

/// A panel of R packets on its way through a block.
template <class M, int R> class MomentumPanel {
 public:
  using S = typename M::Scalar;
  using Tokens = MomentumTokens<M>;
  using Gradients = BlockGradients<S>;
  static constexpr Index size = R * lanes<S>;

  MomentumPanel(const Panel<S>& rows, Index columns, S* room)
      : rows_(rows), columns_(columns), errors_(room), history_(room + momentum_block * size) {}

  /// The entries of `room`: the errors of a block, and W and M before and after every token.
  static Index room(Index columns) {
    return momentum_block * size + 2 * (momentum_block + 1) * matrix_size(columns);
  }

  /// `first` is the panel before the block.
  EIGEN_DONT_INLINE void forward(const Tokens& tokens, Index count, const S* first) const {
    std::copy_n(first, columns_ * size, W(0));
    std::copy_n(first + columns_ * size, columns_ * size, momentum(0));
    Column retrieved = Column::all(S(0));
    for (Index j = 0; j < columns_; ++j)
      retrieved.add(Column::load(W(0) + j * size), tokens.lookup(tokens.first)[j]);
    for (Index i = 0; i < count; ++i) {
      const Index t = tokens.first + i;
      const typename Tokens::template Write<Column> write(tokens, t, retrieved, rows_);
      tokens.error(t, retrieved, rows_).store(errors_ + i * size);
      retrieved = pass(write, i, tokens.key(t), tokens.lookup(t + (i + 1 < count ? 1 : 0)));
    }
  }

  /// `rows_.data` has G and H. dy has the columns of the block.
  EIGEN_DONT_INLINE void backward(const Tokens& tokens, Index count, Columns<const S> dy,
                                  Gradients& d) const {
    Pass pass;
    for (Index i = count; i-- > 0;) {
      const Index t = tokens.first + i, next = i + 1 < count ? i + 1 : i;
      const MomentumWrite<S>& by = tokens.write(t);
      pass.begin(dy(i) + rows_.first, rows_.rows, errors_ + i * size, by.rate);
      pass.run(*this, i, by, tokens.key(t), tokens.query(t), tokens.lookup(tokens.first + next), d,
               next);
      pass.end(errors_ + i * size, by.rate, d.writes[std::size_t(i)]);
      store_part(pass.value_gradient(), &d.values(rows_.first, i), 0, rows_.rows);
    }
    pass.finish(*this, tokens.lookup(tokens.first), d);
  }

 private:
  using Packet = Rows<S, 1>;
  using Column = Rows<S, R>;
  static constexpr Index lane = lanes<S>;

  // With a gap, so that the matrices of a token are in different sets of the cache.
  static Index matrix_size(Index columns) { return (columns + 1) * size; }
  S* W(Index i) const { return history_ + 2 * i * matrix_size(columns_); }
  S* momentum(Index i) const { return W(i) + matrix_size(columns_); }

  // Writes token i, and looks up the next one.
  template <class Write>
  EIGEN_ALWAYS_INLINE Column pass(const Write& write, Index i, const S* key, const S* next) const {
    const S *const from = W(i), *const from_momentum = momentum(i);
    S *const to = W(i + 1), *const to_momentum = momentum(i + 1);
    Column retrieved = Column::all(S(0));
    for (Index j = 0; j < columns_; ++j) {
      Column w = Column::load(from + j * size), m = Column::load(from_momentum + j * size);
      write(w, m, key[j]);
      w.store(to + j * size);
      m.store(to_momentum + j * size);
      retrieved.add(w, next[j]);
    }
    return retrieved;
  }

  // The backward pass of one token over the columns.
  struct Pass {
    Packet dy[R], update[R], dupdate[R];
    Packet pending[R];  // −dv of the token after
    Packet keep, momentum, write;

    Pass() { std::fill_n(pending, R, Packet::all(S(0))); }

    void begin(const S* gradient, Index rows, const S* error, S rate) {
      S entries[size];
      load_part<Column>(gradient, 0, rows).store(entries);
      keep = momentum = write = Packet::all(S(0));
      for (int r = 0; r < R; ++r) {
        dy[r] = Packet::load(entries + r * lane);
        update[r] = Packet::load(error + r * lane);
        update[r].scale(rate);
        dupdate[r] = Packet::all(S(0));
      }
    }
    void end(const S* error, S rate, MomentumGradient<S>& g) {
      g.keep += keep.sum();
      g.momentum += momentum.sum();
      g.write += write.sum();
      for (int r = 0; r < R; ++r) {
        Packet product = dupdate[r];
        product.scale(Packet::load(error + r * lane));
        g.rate += product.sum();
        pending[r] = dupdate[r];
        pending[r].scale(-rate);
      }
    }
    Column value_gradient() const {
      S entries[size];
      for (int r = 0; r < R; ++r) pending[r].store(entries + r * lane);
      Column x = Column::load(entries);
      x.scale(S(-1));
      return x;
    }

    EIGEN_ALWAYS_INLINE void run(const MomentumPanel& x, Index i, const MomentumWrite<S>& by,
                                 const S* key, const S* query, const S* lookup, Gradients& d,
                                 Index next) {
      const S *const W0 = x.W(i), *const M0 = x.momentum(i), *const W1 = x.W(i + 1),
                     *const M1 = x.momentum(i + 1);
      S *const G = x.rows_.data, *const H = G + x.columns_ * size;
      S *const dkey = &d.keys(0, i), *const dquery = &d.queries(0, i),
               *const dlookup = &d.lookups(0, next);
      for (Index j = 0; j < x.columns_; ++j) {
        Packet of_key = Packet::load(dkey + j * lane), of_query = Packet::load(dquery + j * lane),
               of_lookup = Packet::load(dlookup + j * lane);
        for (int r = 0; r < R; ++r) {
          const Index at = j * size + r * lane;
          Packet g = Packet::load(G + at), h = Packet::load(H + at);
          const Packet after = Packet::load(W1 + at);
          of_lookup.add(after, pending[r]);
          of_query.add(after, dy[r]);
          g.add(pending[r], lookup[j]);
          g.add(dy[r], query[j]);
          keep.add(Packet::load(W0 + at), g);
          if constexpr (adds_momentum<M>()) {
            h.add(g);
          } else {
            write.add(Packet::load(M1 + at), g);
            h.add(g, by.write);
          }
          momentum.add(Packet::load(M0 + at), h);
          dupdate[r].add(h, key[j]);
          of_key.add(h, update[r]);
          g.scale(by.keep);
          h.scale(by.momentum);
          g.store(G + at);
          h.store(H + at);
        }
        of_key.store(dkey + j * lane);
        of_query.store(dquery + j * lane);
        of_lookup.store(dlookup + j * lane);
      }
    }
    // What waits for the pass before the first token.
    void finish(const MomentumPanel& x, const S* lookup, Gradients& d) const {
      S *const G = x.rows_.data, *const dlookup = &d.lookups(0, 0);
      for (Index j = 0; j < x.columns_; ++j) {
        Packet of_lookup = Packet::load(dlookup + j * lane);
        for (int r = 0; r < R; ++r) {
          const Index at = j * size + r * lane;
          Packet g = Packet::load(G + at);
          g.add(pending[r], lookup[j]);
          g.store(G + at);
          of_lookup.add(Packet::load(x.W(0) + at), pending[r]);
        }
        of_lookup.store(dlookup + j * lane);
      }
    }
  };

  Panel<S> rows_;
  Index columns_;
  S *errors_, *history_;
};

/// The backward pass of a sequence, whose scan filled the trace.
template <class M> class MomentumBackward {
 public:
  using S = typename M::Scalar;
  using State = StateOf<M>;

  MomentumBackward(const M& m, const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
                   const OutGradSequence<M>& dy, const WriteGradSequence<M>& dinputs,
                   const ReadGradSequence<M>& dqueries)
      : m_(m),
        inputs_(inputs),
        queries_(queries),
        dy_(columns_of(dy.output)),
        dinputs_(dinputs),
        dqueries_(dqueries),
        d_(queries.query.rows(), dy.output.rows()) {}

  void run(const MomentumTrace<S>& trace, State& ds) {
    struct Gradient;
    const auto gradients = momentum_panels<S, Gradient>(ds);
    const Index total = queries_.query.cols();
    for (Index i = trace.states.cols(); i-- > 0;) {
      const Index first = i * momentum_block, count = std::min(momentum_block, total - first);
      run_block(&trace.states(0, i), gradients, first, count);
      for (Index t = 0; t < count; ++t) add(first + t, t);
    }
    copy_out(gradients, ds);
  }

 private:
  static constexpr int tallest = tall_panel(true);

  template <class Panels>
  void run_block(const S* before, const Panels& gradients, Index first, Index count) {
    const Index columns = gradients.columns();
    S* const room = thread_buffer<S, MomentumBackward>(MomentumPanel<M, tallest>::room(columns));
    MomentumTokens<M> tokens({columns_of(inputs_.key), columns_of(queries_.query), {}}, m_,
                             inputs_);
    tokens.prepare(first, count);
    d_.clear();
    for (const Panel<S>& panel : gradients)
      with_panel(panel, columns, room, [&](const auto& rows) {
        rows.forward(tokens, count, before + momentum_offset(panel, columns));
        rows.backward(tokens, count, Columns<const S>(dy_).from(first), d_);
      });
  }
  template <class F>
  static void with_panel(const Panel<S>& panel, Index columns, S* room, const F& f) {
    if (panel.packets == 1) return f(MomentumPanel<M, 1>(panel, columns, room));
    if (panel.packets == 2) return f(MomentumPanel<M, 2>(panel, columns, room));
    f(MomentumPanel<M, tallest>(panel, columns, room));
  }

  // Adds the gradients of token t, the i-th of its block.
  void add(Index t, Index i) {
    MomentumGradient<S>& g = d_.writes[std::size_t(i)];
    g.key = d_.sum(d_.keys, i), g.lookup = d_.sum(d_.lookups, i), g.value = &d_.values(0, i);
    const auto extents = m_.signature().write();
    auto dinput = token_at<WriteGradToken<M>>(dinputs_, extents, t);
    m_.momentum_write_vjp(token_at<WriteToken<M>>(inputs_, extents, t), g, dinput);
    auto dquery = token_at<ReadGradToken<M>>(dqueries_, m_.signature().read(), t);
    add_gradient(dquery.query, d_.sum(d_.queries, i));
  }

  const M& m_;
  const WriteSequence<M>& inputs_;
  const ReadSequence<M>& queries_;
  Columns<const S> dy_;
  const WriteGradSequence<M>& dinputs_;
  const ReadGradSequence<M>& dqueries_;
  BlockGradients<S> d_;
};

}  // namespace fw::detail
