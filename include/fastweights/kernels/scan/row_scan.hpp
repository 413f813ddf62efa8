#pragma once

#include <algorithm>
#include <fastweights/kernels/rule.hpp>

/// \file
/// Scans of rules that change every entry of W by itself. A pass over a panel of rows writes a
/// token, reads it and looks up the next key, so that W is loaded and stored once per token. `Rule`
/// has the tokens: it derives from RowTokens, and says what differs from there.
///
///     static constexpr bool has_lookups;         // whether a write needs W times its look-up key
///     const S* lookup(Index t) const;            // that key of token t; its key by default
///     static constexpr bool couples_rows;        // see below
///     static constexpr bool needs_norm;
///     void prepare(Index first, Index count);    // is called before these tokens
///     template <class Column> struct Write {     // of token t to some rows of W
///       Write(const Rule&, Index t, const Column& retrieved, const Panel<S>& rows);
///       // To the column of W of key entry k. With two matrices also the other's.
///       void operator()(Column& w, S k) const;
///       void operator()(Column& w, Column& other, S k) const;
///     };
///
/// A Column is some rows of a column of W, or an entry for each of these rows (simd/packet.hpp):
///
///     load_part<Column>(from + rows.first, 0, rows.rows)   // from: d_v numbers
///     w.scale(x); w.add(x); w.add(x, y); w.subtract(x);    // w *= x, w += x, w += x ∘ y, w −= x
///
/// x of `scale` and y may be a number. `retrieved` is W times the look-up key before the write. If
/// that key is computed, `prepare` does it, for at most row_scan_batch tokens, and `lookup` is only
/// called for these.
///
/// No row of W depends on another row in most rules: a panel takes many tokens before the next. If
/// a write depends on all of W k, or on ‖W‖, the rule says `couples_rows`: all panels take a token
/// before the next one, and in place of `prepare` it has
///
///     void begin(Index t, const S* retrieved);   // with W k_t
///     void end(Index t, S squares);              // with ‖W‖² after the write, if needs_norm
///     S scale() const;                           // W is the stored matrix times this

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The tokens between two calls of Rule::prepare.
inline constexpr Index row_scan_batch = 64;

/// The keys, queries and outputs of a rule's sequence.
template <class S> struct RowTokens {
  using Scalar = S;
  static constexpr bool has_lookups = false, couples_rows = false, needs_norm = false;
  Columns<const S> keys, queries;
  Columns<S> outputs;

  const S* key(Index t) const { return keys(t); }
  const S* lookup(Index t) const { return keys(t); }
  const S* query(Index t) const { return queries(t); }
  S* output(Index t) const { return outputs(t); }
  void prepare(Index, Index) {}
};
template <class M, class S = typename M::Scalar>
RowTokens<S> row_tokens(const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
                        const OutSequence<M>& out) {
  return {columns_of(inputs.key), columns_of(queries.query), columns_of(out.output)};
}

/// The write W ← decay W + update kᵀ of a rule that has `decay` and `update`, one entry per row.
template <class Column, class S> struct DecayAndAdd {
  Column update;
  S decay;

  template <class Rule>
  DecayAndAdd(const Rule& x, Index, const Column&, const Panel<S>& rows)
      : update(load_part<Column>(x.update + rows.first, 0, rows.rows)), decay(x.decay) {}
  EIGEN_ALWAYS_INLINE void operator()(Column& w, S key) const {
    w.scale(decay);
    w.add(update, key);
  }
};

enum class SecondMatrix { none, constant, written };

/// A panel of R packets.
template <class Rule, int R, SecondMatrix second> class RowScan {
 public:
  using S = typename Rule::Scalar;

  static EIGEN_DONT_INLINE void run(const Panel<S>& panel, Index columns, const Rule& rule,
                                    Index first, Index count) {
    const Index last = first + count - 1;
    Sums sums;
    if constexpr (Rule::has_lookups)
      for (Index j = 0; j < columns; ++j)
        sums.retrieved.add(Column::load(panel.data + j * size), rule.lookup(first)[j]);
    for (Index t = first; t <= last; ++t) {
      const Write write(rule, t, sums.retrieved, panel);
      sums = pass(panel, columns, write, rule.key(t), rule.query(t),
                  rule.lookup(std::min(t + 1, last)));
      store_part(sums.read, rule.output(t) + panel.first, 0, panel.rows);
    }
  }

  /// One token. Stores the rows' part of W times the next key, and returns that of ‖W‖².
  static EIGEN_DONT_INLINE S run_token(const Panel<S>& panel, Index columns, const Rule& rule,
                                       Index t, const S* next, S* retrieved) {
    const Write write(rule, t, Column::all(S(0)), panel);
    const Sums sums = pass(panel, columns, write, rule.key(t), rule.query(t), next);
    store_part(sums.read, rule.output(t) + panel.first, 0, panel.rows);
    store_part(sums.retrieved, retrieved + panel.first, 0, panel.rows);
    return sums.squares.sum();
  }

 private:
  using Column = Rows<S, R>;
  using Write = typename Rule::template Write<Column>;
  static constexpr Index size = Column::size;

  struct Sums {
    Column read = Column::all(S(0)), retrieved = read, squares = read;
  };

  // Even and odd columns have sums of their own, which hide the latency of a multiply-add.
  static EIGEN_ALWAYS_INLINE Sums pass(const Panel<S>& panel, Index columns, const Write& write,
                                       const S* key, const S* query, const S* next) {
    S* const data = panel.data;  // a store could change the panel, for all a compiler knows
    Sums even, odd;
    Index j = 0;
    for (; j + 2 <= columns; j += 2) {
      visit(data, columns, write, j, key, query, next, even);
      visit(data, columns, write, j + 1, key, query, next, odd);
    }
    if (j < columns) visit(data, columns, write, j, key, query, next, even);
    even.read.add(odd.read);
    even.retrieved.add(odd.retrieved);
    even.squares.add(odd.squares);
    return even;
  }
  static EIGEN_ALWAYS_INLINE void visit(S* data, [[maybe_unused]] Index columns, const Write& write,
                                        Index j, const S* key, const S* query, const S* next,
                                        Sums& sums) {
    Column w = Column::load(data + j * size);
    if constexpr (second != SecondMatrix::none) {
      S* const other_data = data + (columns + j) * size;
      Column other = Column::load(other_data);
      write(w, other, key[j]);
      if constexpr (second == SecondMatrix::written) other.store(other_data);
    } else {
      write(w, key[j]);
    }
    w.store(data + j * size);
    sums.read.add(w, query[j]);
    if constexpr (Rule::has_lookups) sums.retrieved.add(w, next[j]);
    if constexpr (Rule::needs_norm) sums.squares.add(w, w);
  }
};

/// Calls f(RowScan) of the height of a panel.
template <class Rule, SecondMatrix second, class S, class F>
decltype(auto) with_row_scan(const Panel<S>& panel, const F& f) {
  if (panel.packets == 1) return f(RowScan<Rule, 1, second>());
  if (panel.packets == 2) return f(RowScan<Rule, 2, second>());
  return f(RowScan<Rule, tall_panel(true), second>());
}

/// Scans `steps` tokens. The matrices are W and, if the rule has one, the other, which may be
/// const.
template <class Rule, class Matrix, class... Other>
void scan_rows(Rule rule, Index steps, Matrix& W, Other&... other) {
  using S = typename Rule::Scalar;
  struct Use;
  constexpr auto second = sizeof...(Other) == 0             ? SecondMatrix::none
                          : (std::is_const_v<Other> && ...) ? SecondMatrix::constant
                                                            : SecondMatrix::written;
  const Index columns = W.cols();
  Panels<S, Use, tall_panel(true), 1 + sizeof...(Other)> panels(W.rows(), columns);
  panels.copy_in(W.data(), W.colStride());
  (panels.copy_in(other.data(), other.colStride(), S(1), 1), ...);
  if constexpr (Rule::couples_rows) {
    Eigen::Map<Eigen::Matrix<S, Eigen::Dynamic, 1>> retrieved(thread_buffer<S, Rule>(W.rows()),
                                                              W.rows());
    retrieved.noalias() =
        W * Eigen::Map<const Eigen::Matrix<S, Eigen::Dynamic, 1>>(rule.lookup(0), columns);
    for (Index t = 0; t < steps; ++t) {
      rule.begin(t, retrieved.data());
      const S* const next = rule.lookup(std::min(t + 1, steps - 1));
      S squares = S(0);
      for (const Panel<S>& panel : panels)
        squares += with_row_scan<Rule, second>(panel, [&](auto scan) {
          return scan.run_token(panel, columns, rule, t, next, retrieved.data());
        });
      rule.end(t, squares);
    }
    panels.copy_out(W.data(), W.colStride(), rule.scale());
  } else {
    for (Index t = 0; t < steps; t += row_scan_batch) {
      const Index tokens = std::min(row_scan_batch, steps - t);
      rule.prepare(t, tokens);
      for (const Panel<S>& panel : panels)
        with_row_scan<Rule, second>(panel,
                                    [&](auto scan) { scan.run(panel, columns, rule, t, tokens); });
    }
    panels.copy_out(W.data(), W.colStride());
  }
  if constexpr (second == SecondMatrix::written)
    (panels.copy_out(other.data(), other.colStride(), S(1), 1), ...);
}

}  // namespace fw::detail

namespace fw::inline FASTWEIGHTS_ABI {

// For rules of your own.
using detail::Columns;
using detail::columns_of;
using detail::DecayAndAdd;
using detail::load_part;
using detail::Panel;
using detail::row_scan_batch;
using detail::row_tokens;
using detail::RowTokens;
using detail::scan_rows;

}  // namespace fw
