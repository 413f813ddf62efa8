#pragma once

#include <array>
#include <fastweights/kernels/scan/row_scan.hpp>

/// \file
/// The scan of a rule with momentum (memories/rules/momentum_rule.hpp). With coefficients for every
/// token, a write is
///
///     u = s (v − W p)     M ← a M + u kᵀ     W ← b W + c M

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// What a token writes to a rule with momentum. `lookup` is a vector of the token.
template <class S> struct MomentumWrite {
  const S* lookup;  ///< p, looked up in W before the write
  S rate;           ///< s
  S momentum;       ///< a, the decay of M
  S keep = S(1);    ///< b, the decay of W
  S write = S(1);   ///< c, of M in W
};

/// True if c is 1 for every token, as the rule says by `static constexpr bool adds_momentum`.
template <class M> constexpr bool adds_momentum() {
  if constexpr (requires { M::adds_momentum; })
    return M::adds_momentum;
  else
    return false;
}

/// The tokens of rule M, for scan_rows.
template <class M> struct MomentumTokens : RowTokens<typename M::Scalar> {
  using S = typename M::Scalar;
  static constexpr bool has_lookups = true;
  const M& m;
  const WriteSequence<M>& inputs;
  Columns<const S> values;
  Index first = 0;
  std::array<MomentumWrite<S>, std::size_t(row_scan_batch)> writes;

  MomentumTokens(const RowTokens<S>& rows, const M& rule, const WriteSequence<M>& written)
      : RowTokens<S>(rows), m(rule), inputs(written), values(columns_of(written.value)) {}

  void prepare(Index from, Index count) {
    first = from;
    for (Index i = 0; i < count; ++i)
      writes[std::size_t(i)] =
          m.momentum_write(token_at<WriteToken<M>>(inputs, m.signature().write(), first + i));
  }
  const MomentumWrite<S>& write(Index t) const { return writes[std::size_t(t - first)]; }
  const S* lookup(Index t) const { return write(t).lookup; }

  /// v − W p, for some rows.
  template <class Column>
  Column error(Index t, const Column& retrieved, const Panel<S>& rows) const {
    Column e = load_part<Column>(values(t) + rows.first, 0, rows.rows);
    e.subtract(retrieved);
    return e;
  }

  template <class Column> struct Write {
    Column update;
    S momentum, keep, write;

    Write(const MomentumTokens& x, Index t, const Column& retrieved, const Panel<S>& rows)
        : update(x.error(t, retrieved, rows)),
          momentum(x.write(t).momentum),
          keep(x.write(t).keep),
          write(x.write(t).write) {
      update.scale(x.write(t).rate);
    }
    EIGEN_ALWAYS_INLINE void operator()(Column& w, Column& other, S key) const {
      other.scale(momentum);
      other.add(update, key);
      if constexpr (adds_momentum<M>()) {
        Column sum = other;
        sum.add(w, keep);
        w = sum;
      } else {
        w.scale(keep);
        w.add(other, write);
      }
    }
  };
};

template <class M>
void scan_with_momentum(const M& m, StateOf<M>& s, const WriteSequence<M>& inputs,
                        const ReadSequence<M>& queries, const OutSequence<M>& out) {
  scan_rows(MomentumTokens<M>(row_tokens<M>(inputs, queries, out), m, inputs), queries.query.cols(),
            s.W, s.momentum);
}

/// The tokens of a block of the backward pass.
inline constexpr Index momentum_block = 32;
static_assert(momentum_block <= row_scan_batch);

/// W and M before tokens 0, 32, 64, …, one state per column, in panels of rows (Panels).
template <class S> struct MomentumTrace { Eigen::Matrix<S, Dynamic, Dynamic> states; };

/// The panels of W and M, or of their gradients.
template <class S, class Use> using MomentumPanels = Panels<S, Use, tall_panel(true), 2>;
template <class S, class Use, class State> MomentumPanels<S, Use> momentum_panels(const State& s) {
  MomentumPanels<S, Use> panels(s.W.rows(), s.W.cols());
  panels.copy_in(s.W.data(), s.W.colStride());
  panels.copy_in(s.momentum.data(), s.momentum.colStride(), S(1), 1);
  return panels;
}
template <class Panels, class State> void copy_out(const Panels& panels, State& s) {
  using S = typename decltype(s.W)::Scalar;
  panels.copy_out(s.W.data(), s.W.colStride());
  panels.copy_out(s.momentum.data(), s.momentum.colStride(), S(1), 1);
}
/// Where a panel's part of a state begins, and its size.
template <class S> Index momentum_offset(const Panel<S>& panel, Index columns) {
  return 2 * panel.first * columns;
}
template <class S> Index momentum_size(const Panel<S>& panel, Index columns) {
  return 2 * panel.packets * lanes<S> * columns;
}

/// The same scan, which keeps a state for every block.
template <class M>
void scan_with_momentum(const M& m, StateOf<M>& s, const WriteSequence<M>& inputs,
                        const ReadSequence<M>& queries, const OutSequence<M>& out,
                        MomentumTrace<typename M::Scalar>& trace) {
  using S = typename M::Scalar;
  struct Use;
  const Index total = queries.query.cols(), columns = s.W.cols();
  const auto panels = momentum_panels<S, Use>(s);
  MomentumTokens<M> tokens(row_tokens<M>(inputs, queries, out), m, inputs);
  Index size = 0;
  for (const Panel<S>& panel : panels)
    size = momentum_offset(panel, columns) + momentum_size(panel, columns);
  trace.states.resize(size, (total + momentum_block - 1) / momentum_block);
  for (Index t = 0; t < total; t += momentum_block) {
    const Index count = std::min(momentum_block, total - t);
    tokens.prepare(t, count);
    for (const Panel<S>& panel : panels) {
      std::copy_n(panel.data, momentum_size(panel, columns),
                  &trace.states(momentum_offset(panel, columns), t / momentum_block));
      with_row_scan<MomentumTokens<M>, SecondMatrix::written>(
          panel, [&](auto scan) { scan.run(panel, columns, tokens, t, count); });
    }
  }
  copy_out(panels, s);
}

}  // namespace fw::detail
