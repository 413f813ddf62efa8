#pragma once

#include <cstring>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/continuous/attend.hpp>
#include <fastweights/layers/attention/kl_regulariser.hpp>
#include <fastweights/layers/attention/smoothing_gate.hpp>
#include <fastweights/layers/projections/linear.hpp>

namespace fw {

/// Sizes of a long-term layer.
struct LongTermOptions {
  Index heads = 1;    ///< must divide the memory's d
  Index outputs = 0;  ///< 0: as the memory's d
  KlRegulariser kl = {};
};

/// Attention to a long-term memory of signals, to stand beside a short-term one in any layer. It is
/// given chunks of tokens to remember and queries that the host layer has projected:
///
///     write X:   memory ← gate(X)
///     read Q:    K = W_K B, V = W_V B for the memory's coefficients B
///                per head y_h = V_h r(K_hᵀq_h/√d_h), out = W_out [y_1; …; y_H]
///
/// With a ContinuousMemory it is the ∞-former's long-term attention. The density's weights are
/// learned, and all heads share one histogram of where they looked.
///
/// Shapes: X d×L, Q d×T, out d_out×T; weights d×d, d×d, d_out×d without bias. Cost: the memory's
/// write, 4 d² N flops for K and V at the first read after it, and 4 d N flops and H densities a
/// query.
/// Throws std::invalid_argument, naming the argument, when a size does not fit; nothing is changed.
/// Martins, Marinho, Martins 2022, arXiv 2109.00301, section 3.
template <class M, class Gate = NoGate<typename M::Scalar>> struct LongTermLayer {
  using Scalar = typename M::Scalar;
  using Matrix = Eigen::Matrix<Scalar, Dynamic, Dynamic>;
  using Density = std::remove_cvref_t<decltype(std::declval<const M&>().density())>;
  static constexpr std::string_view name = "LongTermLayer";

  Gate gate;
  Linear<Scalar> key, value, output;
  Density density;
  M memory;
  Index heads;
  KlRegulariser kl;
  static constexpr auto names =
      fw::names("gate", "key", "value", "output", "density", "memory", "heads", "kl");

  using State = StateOf<M>;
  struct Trace {
    typename Gate::Trace gate;
    Matrix gated;                             ///< the chunk behind its gate
    Matrix draws;                             ///< of the write, 1×M for a memory that draws
    std::vector<State> before, seen;          ///< by the write, by the read: one each
    Matrix signal, keys, values, context;     ///< of the read
    Matrix key_weight, value_weight;          ///< behind the keys and values
    double divergence = 0;                    ///< mean KL of the read
    Index written = 0, read = 0;              ///< tokens and queries of the last train pass
    Matrix dcontext, dkeys, dvalues, dgated;  ///< backward's buffers
  };

  /// Parameters are zero until initialised or loaded, but for the density's, which are the
  /// memory's.
  LongTermLayer(LongTermOptions o, M m, Gate g)
      : gate(std::move(g)),
        key(m.options().d, m.options().d, false),
        value(m.options().d, m.options().d, false),
        output(m.options().d, o.outputs != 0 ? o.outputs : m.options().d, false),
        density(m.density()),
        memory(std::move(m)),
        heads(o.heads),
        kl(o.kl) {
    detail::check_size<Dynamic>(name, "heads", heads);
    detail::check_above_zero(name, "kl.sigma0", kl.sigma0);
    if (inputs() % heads != 0)
      throw std::invalid_argument(std::string(name) + ": d is " + std::to_string(inputs()) +
                                  ", expected a multiple of " + std::to_string(heads) + " heads");
    if (detail::gate_rows(gate, inputs()) != inputs())
      detail::throw_mismatch(name, "the gate", detail::gate_rows(gate, 0), "rows", inputs(),
                             "the memory");
  }

  Index inputs() const { return key.inputs(); }
  Index outputs() const { return output.outputs(); }
  State initial_state() const { return fw::initial_state(memory); }
  /// How many columns a chunk has behind its gate; throws for a chunk that the gate does not take.
  Index length(Index tokens) const { return gate.length(tokens); }
  /// How many random numbers a write takes.
  Index draws() const {
    if constexpr (M::sticky)
      return memory.options().samples;
    else
      return 0;
  }

  /// Remembers a chunk. `drawn`, 1×M from [0, 1), is for a memory that samples at random.
  void write(State& state, Input<Scalar> x, Trace& trace, Pass pass = Pass::infer,
             Input<Scalar> drawn = Matrix()) const {
    check_chunk("x", x, x.cols());
    trace.gated.resize(x.rows(), length(x.cols()));
    gate.forward(x, trace.gated, trace.gate);
    trace.written = 0;
    if (pass == Pass::train) {
      trace.draws = drawn;
      trace.before.assign(1, state);
    }
    fw::write(memory, state, written<WriteToken<M>>(trace.gated, drawn));
    if (pass == Pass::train) trace.written = x.cols();
  }

  /// Answers queries from the memory.
  void read(State& state, Input<Scalar> queries, Output<Scalar> out, Trace& trace,
            Pass pass = Pass::infer) const {
    check_chunk("queries", queries, queries.cols());
    detail::check_extent(name, "out", out, outputs(), queries.cols());
    detail::check_state(M::name, state, memory.state_extents());
    trace.read = 0;
    project(state, trace);
    trace.context.setZero(inputs(), queries.cols());
    trace.divergence = 0;
    for (Index h = 0; h < heads_to_ask(trace); ++h)
      detail::attend(density, memory.basis(), head(trace.keys, h), head(trace.values, h),
                     head(queries, h), head(trace.context, h),
                     [&](Index, const auto& scores, const auto& place) {
                       trace.divergence += kl.divergence(place);
                       if constexpr (M::sticky) memory.add_to_histogram(state, density, scores, place);
                     });
    trace.divergence /= static_cast<double>(heads * queries.cols());
    Nothing none;
    output.forward(none, trace.context, out, none);
    if (pass == Pass::train) {
      trace.seen.assign(1, state);
      trace.read = queries.cols();
    }
  }

  /// From the gradient of a read to that of its queries (overwritten), of the state (added to
  /// dstate) and of the parameters (added to grad), kl.weight · KL included; the KL is a mean over
  /// `asked` queries, those of this read unless it is one of several.
  void read_backward(Input<Scalar> queries, Trace& trace, Input<Scalar> dout,
                     Output<Scalar> dqueries, State& dstate, LongTermLayer& grad,
                     Index asked = 0) const {
    check_chunk("queries", queries, trace.read);
    detail::check_extent(name, "dout", dout, outputs(), trace.read);
    detail::check_extent(name, "dqueries", dqueries, inputs(), trace.read);
    detail::check_state(name, dstate, memory.state_extents());
    detail::check_same_shapes(name, *this, "grad", grad);
    trace.dcontext.resize(inputs(), trace.read);
    Nothing none;
    output.backward(trace.context, none, dout, trace.dcontext, grad.output);
    dqueries.setZero();
    trace.dkeys.setZero(inputs(), trace.keys.cols());
    trace.dvalues.setZero(inputs(), trace.keys.cols());
    const double share = 1 / static_cast<double>(heads * (asked > 0 ? asked : trace.read));
    const auto dplace = [&](Index, const auto& place) {
      auto d = density.zero_gradient(place);
      kl.pull(place, share, d);
      return d;
    };
    for (Index h = 0; h < heads_to_ask(trace); ++h)
      detail::attend_vjp(density, memory.basis(), head(trace.keys, h), head(trace.values, h),
                         head(queries, h), head(trace.dcontext, h), dplace, head(trace.dkeys, h),
                         head(trace.dvalues, h), head(dqueries, h), grad.density);
    Output<Scalar> dsignal(memory.slots_like(trace.seen[0], dstate));
    key.add_backward(trace.signal, trace.dkeys, dsignal, grad.key);
    value.add_backward(trace.signal, trace.dvalues, dsignal, grad.value);
  }

  /// From the gradient of the state after a write to that of the state before, in place, and to
  /// that of the chunk (overwritten).
  void write_backward(Input<Scalar> x, Trace& trace, State& dstate, Output<Scalar> dx,
                      LongTermLayer& grad) const {
    check_chunk("x", x, trace.written);
    detail::check_extent(name, "dx", dx, inputs(), trace.written);
    detail::check_state(name, dstate, memory.state_extents());
    detail::check_same_shapes(name, *this, "grad", grad);
    trace.dgated.setZero(x.rows(), trace.gated.cols());
    Matrix ddraws = Matrix::Zero(trace.draws.rows(), trace.draws.cols());
    memory.write_vjp(trace.before[0], written<WriteToken<M>>(trace.gated, trace.draws), dstate,
                     written<WriteGradToken<M>>(trace.dgated, ddraws));
    gate.backward(x, trace.gate, trace.dgated, dx, grad.gate);
  }

 private:
  template <class Token, class X, class Draws> static Token written(X& x, Draws& draws) {
    if constexpr (M::sticky)
      return Token{x, draws};
    else
      return Token{x};
  }

  void check_chunk(std::string_view argument, const Input<Scalar>& x, Index columns) const {
    detail::check_extent(name, argument, x, inputs(), columns);
    detail::check_not_empty(name, argument, x.cols());
  }

  // Not again for what the trace has projected already: a stream that reads token by token asks
  // many times between two writes, and comparing d (N + 2 d) numbers is little beside 4 d² N flops.
  void project(const State& state, Trace& trace) const {
    const auto& signal = memory.slots(state);
    if (same(trace.signal, signal) && same(trace.key_weight, key.weight) &&
        same(trace.value_weight, value.weight))
      return;
    trace.signal = signal;
    trace.key_weight = key.weight;
    trace.value_weight = value.weight;
    trace.keys.setZero(inputs(), trace.signal.cols());
    trace.values.setZero(inputs(), trace.signal.cols());
    detail::add_product(trace.keys, key.weight, trace.signal);
    detail::add_product(trace.values, value.weight, trace.signal);
  }

  // By their bits, which is many times faster than by Eigen's ==. Columns are contiguous.
  template <class A> static bool same(const Matrix& a, const A& b) {
    if (a.rows() != b.rows() || a.cols() != b.cols()) return false;
    const auto bytes = static_cast<std::size_t>(a.size()) * sizeof(Scalar);
    return bytes == 0 || std::memcmp(a.data(), b.data(), bytes) == 0;
  }

  // None of a memory without slots, which answers 0: there are no rows of nothing to view.
  Index heads_to_ask(const Trace& trace) const { return trace.signal.cols() > 0 ? heads : 0; }

  template <class X> auto head(X&& all, Index h) const {
    const Index rows = inputs() / heads;
    return all.middleRows(h * rows, rows);
  }
};

}  // namespace fw
