#pragma once

#include <algorithm>
#include <fastweights/kernels/scan/panels.hpp>
#include <tuple>

/// \file
/// Scans of rules that change every entry of W by itself, so that rows of W never meet: a panel of
/// rows takes many tokens before the next panel. A pass over the panel writes a token, reads it and
/// looks up the next key, so that W is loaded and stored once per token. `Rule` has the tokens:
///
///     using Scalar = S;
///     static constexpr bool has_lookups;            // whether a write needs W k
///     const S *key(Index t), *query(Index t);
///     S* output(Index t);
///     void prepare(Index first, Index count);       // is called before these tokens
///     template <class Column> struct Write {        // of token t to some rows of W
///       Write(const Rule&, Index t, const Column& retrieved, const Panel<S>& rows);
///       void operator()(Column& w, S k_j) const;    // to column j; with two matrices (w, other,
///       k_j)
///     };

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The tokens between two calls of Rule::prepare.
inline constexpr Index row_scan_batch = 64;

/// A panel of R packets, of one or two matrices.
template <class Rule, int R, int matrices> class RowScan {
 public:
  using S = typename Rule::Scalar;

  static EIGEN_DONT_INLINE void run(const Panel<S>& panel, Index columns, const Rule& rule,
                                    Index first, Index count) {
    const Index last = first + count - 1;
    Sums sums;
    if constexpr (Rule::has_lookups)
      for (Index j = 0; j < columns; ++j)
        sums.retrieved.add(Column::load(panel.data + j * size), rule.key(first)[j]);
    for (Index t = first; t <= last; ++t) {
      const Write write(rule, t, sums.retrieved, panel);
      sums =
          pass(panel, columns, write, rule.key(t), rule.query(t), rule.key(std::min(t + 1, last)));
      store_part(sums.read, rule.output(t) + panel.first, 0, panel.rows);
    }
  }

 private:
  using Column = Rows<S, R>;
  using Write = typename Rule::template Write<Column>;
  static constexpr Index size = Column::size;

  struct Sums {
    Column read = Column::all(S(0)), retrieved = Column::all(S(0));
  };

  // Even and odd columns have sums of their own, which hide the latency of a multiply-add.
  static EIGEN_ALWAYS_INLINE Sums pass(const Panel<S>& panel, Index columns, const Write& write,
                                       const S* key, const S* query, const S* next) {
    Sums even, odd;
    Index j = 0;
    for (; j + 2 <= columns; j += 2) {
      visit(panel, columns, write, j, key, query, next, even);
      visit(panel, columns, write, j + 1, key, query, next, odd);
    }
    if (j < columns) visit(panel, columns, write, j, key, query, next, even);
    even.read.add(odd.read);
    even.retrieved.add(odd.retrieved);
    return even;
  }
  static EIGEN_ALWAYS_INLINE void visit(const Panel<S>& panel, [[maybe_unused]] Index columns,
                                        const Write& write, Index j, const S* key, const S* query,
                                        const S* next, Sums& sums) {
    S* const data = panel.data + j * size;
    Column w = Column::load(data);
    if constexpr (matrices == 2) {
      S* const other_data = data + columns * size;
      Column other = Column::load(other_data);
      write(w, other, key[j]);
      other.store(other_data);
    } else {
      write(w, key[j]);
    }
    w.store(data);
    sums.read.add(w, query[j]);
    if constexpr (Rule::has_lookups) sums.retrieved.add(w, next[j]);
  }
};

/// Scans `steps` tokens. The matrices are W and, if the rule has one, the other.
template <class Rule, class... Matrix> void scan_rows(Rule rule, Index steps, Matrix&... matrices) {
  using S = typename Rule::Scalar;
  struct Use;
  constexpr int count = sizeof...(Matrix), tallest = tall_panel(true);
  const auto& W = std::get<0>(std::tie(matrices...));
  const Index columns = W.cols();
  Panels<S, Use, tallest, count> panels(W.rows(), columns);
  Index which = 0;
  (panels.copy_in(matrices.data(), matrices.colStride(), S(1), which++), ...);
  for (Index t = 0; t < steps; t += row_scan_batch) {
    const Index tokens = std::min(row_scan_batch, steps - t);
    rule.prepare(t, tokens);
    for (const Panel<S>& panel : panels)
      if (panel.packets == 1)
        RowScan<Rule, 1, count>::run(panel, columns, rule, t, tokens);
      else if (panel.packets == 2)
        RowScan<Rule, 2, count>::run(panel, columns, rule, t, tokens);
      else
        RowScan<Rule, tallest, count>::run(panel, columns, rule, t, tokens);
  }
  which = 0;
  (panels.copy_out(matrices.data(), matrices.colStride(), S(1), which++), ...);
}

}  // namespace fw::detail
