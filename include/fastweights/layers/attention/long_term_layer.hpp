#pragma once

#include <cstring>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/continuous/attend.hpp>
#include <fastweights/core/errors.hpp>
#include <fastweights/layers/attention/kl_regulariser.hpp>
#include <fastweights/layers/attention/smoothing_gate.hpp>
#include <fastweights/math/products.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// W, a projection without bias.
template <class S> struct LinearMap {
  Eigen::Matrix<S, Dynamic, Dynamic> weight;
  static constexpr std::string_view name = "LinearMap";
  static constexpr auto names = fw::names("weight");

  /// Zero until initialised or loaded. Throws std::invalid_argument for a size below 1.
  LinearMap(Index in, Index out) {
    check_size<Dynamic>(name, "in", in);
    check_size<Dynamic>(name, "out", out);
    weight.setZero(out, in);
  }
  /// Uniform in ±1/√in, as PyTorch does.
  template <class Generator> void initialise(Generator& random) {
    if (weight.size() > 0)
      fill_uniform(random, 1 / std::sqrt(static_cast<double>(weight.cols())), weight);
  }
};

}  // namespace detail

/// Sizes of a long-term layer.
struct LongTermOptions {
  Index heads = 1;        ///< must divide the memory's d
  Index outputs = 0;      ///< 0: the memory's d
  KlRegulariser kl = {};  ///< of the densities of all queries
};

/// Attention to a long-term memory of signals, for programs that pass the chunks of tokens to
/// write, and queries that they have projected, themselves. In a network
/// networks::long_term_attention() does:
///
///     write X:   memory ← gate(X)
///     read Q:    K = W_K B, V = W_V B for the memory's coefficients B
///                per head y_h = V_h r(K_hᵀq_h/√d_h), out = W_out [y_1; …; y_H]
///
/// With a ContinuousMemory it is the ∞-former's long-term attention. The weights of the density are
/// learned. All heads share one histogram of attended positions.
///
/// Shapes: X d×L, Q d×T, out d_out×T; weights d×d, d×d, d_out×d without bias. Cost: the memory's
/// write, 4 d² N flops for K and V at the first read after a write, and per query 4 d N flops and H
/// densities.
/// Throws std::invalid_argument, which names the argument, when a size does not fit; nothing is
/// changed then.
/// Martins, Marinho, Martins 2022, arXiv 2109.00301, section 3.
template <class M, class Gate = NoGate<typename M::Scalar>> struct LongTermLayer {
  using Scalar = typename M::Scalar;
  using Matrix = Eigen::Matrix<Scalar, Dynamic, Dynamic>;
  /// The density of the memory.
  using Density = std::remove_cvref_t<decltype(std::declval<const M&>().density())>;
  static constexpr std::string_view name = "LongTermLayer";

  Gate gate;  ///< what a chunk goes through before it is written
  /// W_K, W_V and W_out.
  detail::LinearMap<Scalar> key, value, output;
  Density density;  ///< the density of a query, with its parameters
  M memory;
  Index heads;
  KlRegulariser kl;  ///< weight and parameters of the KL
  static constexpr auto names =
      fw::names("gate", "key", "value", "output", "density", "memory", "heads", "kl");

  using State = StateOf<M>;
  struct Trace {
    typename Gate::Trace gate;
    Matrix gated;                             ///< the gate's output for the chunk
    Matrix draws;                             ///< of the write, 1×M for a sticky memory
    std::vector<State> before_write;          ///< the state before the write; one element
    std::vector<State> at_read;               ///< the state of the read; one element
    Matrix signal, keys, values, context;     ///< of the read
    Matrix key_weight, value_weight;          ///< the weights that gave keys and values
    double divergence = 0;                    ///< mean KL of the read
    Index written = 0, read = 0;              ///< tokens and queries of the last train pass
    Matrix dcontext, dkeys, dvalues, dgated;  ///< backward's buffers
  };

  /// Parameters are zero until initialised or loaded, except the density's, which start as the
  /// memory's.
  LongTermLayer(LongTermOptions o, M m, Gate g)
      : gate(std::move(g)),
        key(m.options().d, m.options().d),
        value(m.options().d, m.options().d),
        output(m.options().d, o.outputs != 0 ? o.outputs : m.options().d),
        density(m.density()),
        memory(std::move(m)),
        heads(o.heads),
        kl(o.kl) {
    detail::check_size<Dynamic>(name, "heads", heads);
    detail::check_above_zero(name, "kl.sigma0", kl.sigma0);
    if (inputs() % heads != 0)
      detail::throw_invalid({name, ": d is ", std::to_string(inputs()), ", expected a multiple of ",
                             std::to_string(heads), " heads"});
    if (detail::gate_rows(gate, inputs()) != inputs())
      detail::throw_mismatch(name, "the gate", detail::gate_rows(gate, 0), "rows", inputs(),
                             "the memory");
  }

  Index inputs() const { return key.weight.cols(); }
  Index outputs() const { return output.weight.rows(); }
  State initial_state() const { return fw::initial_state(memory); }
  void check_state(const State& state) const { fw::check_state(memory, state); }
  /// The tokens written to the memory of a state, as the gate passed them on.
  Index tokens(const State& state) const requires requires { state.tokens; }
  { return state.tokens; }
  /// The gate's output columns for a chunk of `tokens`. Throws if the gate rejects that length.
  Index length(Index tokens) const { return gate.length(tokens); }
  /// The number of random numbers that a write takes.
  Index draws() const {
    if constexpr (M::sticky)
      return memory.options().samples;
    else
      return 0;
  }

  /// Writes a chunk. A sticky memory samples at random and needs `write_draws`, 1×M from [0, 1).
  void write(State& state, Input<Scalar> x, Trace& trace, Pass pass = Pass::infer,
             Input<Scalar> write_draws = Matrix()) const {
    check_chunk("x", x, x.cols());
    detail::check_whole(name, pass);
    trace.gated.resize(x.rows(), length(x.cols()));
    gate.forward(x, trace.gated, trace.gate);
    trace.written = 0;
    if (pass.trains()) {
      trace.draws = write_draws;
      trace.before_write.assign(1, state);
    }
    fw::write(memory, state, write_token<WriteToken<M>>(trace.gated, write_draws));
    if (pass.trains()) trace.written = x.cols();
  }

  /// Reads the memory with queries.
  void read(State& state, Input<Scalar> queries, Output<Scalar> out, Trace& trace,
            Pass pass = Pass::infer) const {
    detail::check_extent(name, "out", out, outputs(), queries.cols());
    trace.context.resize(inputs(), queries.cols());
    read_context(state, queries, trace.context, trace, pass);
    detail::set_product(out, output.weight, trace.context, detail::one_block);
  }
  /// A read without W_out: the heads' outputs, d×T.
  void read_context(State& state, Input<Scalar> queries, Output<Scalar> context, Trace& trace,
                    Pass pass = Pass::infer) const {
    check_chunk("queries", queries, queries.cols());
    detail::check_whole(name, pass);
    detail::check_extent(name, "context", context, inputs(), queries.cols());
    check_state(state);
    trace.read = 0;
    project(state, trace);
    context.setZero();
    trace.divergence = 0;
    for (Index h = 0; h < active_heads(trace); ++h)
      detail::attend(density, memory.basis(), head(trace.keys, h), head(trace.values, h),
                     head(queries, h), head(context, h),
                     [&](Index, const auto& scores, const auto& mixture) {
                       trace.divergence += kl.divergence(mixture);
                       if constexpr (M::sticky)
                         memory.add_to_histogram(state, density, scores, mixture);
                     });
    trace.divergence /= static_cast<double>(heads * queries.cols());
    if (pass.trains()) {
      trace.at_read.assign(1, state);
      trace.read = queries.cols();
    }
  }

  /// The backward pass of a read, with the gradient of kl.weight · KL included: overwrites
  /// dqueries, adds to dstate and to grad. The KL is a mean over `total_queries`; 0 means the
  /// queries of this read. A pass of several reads gives the sum of their queries.
  void read_backward(Input<Scalar> queries, Trace& trace, Input<Scalar> dout,
                     Output<Scalar> dqueries, State& dstate, LongTermLayer& grad,
                     Index total_queries = 0) const {
    check_chunk("queries", queries, trace.read);
    detail::check_extent(name, "dout", dout, outputs(), trace.read);
    detail::check_gradient(name, *this, grad);
    trace.dcontext.resize(inputs(), trace.read);
    detail::set_product(trace.dcontext, output.weight.transpose(), dout, detail::one_block);
    read_context_backward(queries, trace, trace.dcontext, dqueries, dstate, grad, total_queries);
    detail::add_product(grad.output.weight, dout, trace.context.transpose(), detail::one_block);
  }
  /// The backward pass of read_context.
  void read_context_backward(Input<Scalar> queries, Trace& trace, Input<Scalar> dcontext,
                             Output<Scalar> dqueries, State& dstate, LongTermLayer& grad,
                             Index total_queries = 0) const {
    check_chunk("queries", queries, trace.read);
    detail::check_extent(name, "dcontext", dcontext, inputs(), trace.read);
    detail::check_extent(name, "dqueries", dqueries, inputs(), trace.read);
    detail::check_state(name, dstate, memory.state_extents());
    detail::check_gradient(name, *this, grad);
    dqueries.setZero();
    trace.dkeys.setZero(inputs(), trace.keys.cols());
    trace.dvalues.setZero(inputs(), trace.keys.cols());
    const double scale =
        1 / static_cast<double>(heads * (total_queries > 0 ? total_queries : trace.read));
    const auto dmixture = [&](Index, const auto& mixture) {
      auto d = density.zero_gradient(mixture);
      kl.add_gradient(mixture, scale, d);
      return d;
    };
    for (Index h = 0; h < active_heads(trace); ++h)
      detail::attend_vjp(density, memory.basis(), head(trace.keys, h), head(trace.values, h),
                         head(queries, h), head(dcontext, h), dmixture, head(trace.dkeys, h),
                         head(trace.dvalues, h), head(dqueries, h), grad.density);
    Output<Scalar> dsignal(memory.slots_gradient(trace.at_read[0], dstate));
    add_gradient(key, trace.signal, trace.dkeys, dsignal, grad.key);
    add_gradient(value, trace.signal, trace.dvalues, dsignal, grad.value);
  }

  /// The backward pass of a write: dstate goes from the gradient of the state after the write to
  /// that of the state before it, in place; dx is overwritten, grad accumulates.
  void write_backward(Input<Scalar> x, Trace& trace, State& dstate, Output<Scalar> dx,
                      LongTermLayer& grad) const {
    check_chunk("x", x, trace.written);
    detail::check_extent(name, "dx", dx, inputs(), trace.written);
    detail::check_state(name, dstate, memory.state_extents());
    detail::check_gradient(name, *this, grad);
    trace.dgated.setZero(x.rows(), trace.gated.cols());
    Matrix ddraws = Matrix::Zero(trace.draws.rows(), trace.draws.cols());
    memory.write_vjp(trace.before_write[0], write_token<WriteToken<M>>(trace.gated, trace.draws),
                     dstate, write_token<WriteGradToken<M>>(trace.dgated, ddraws));
    gate.backward(x, trace.gate, trace.dgated, dx, grad.gate);
  }

 private:
  template <class Token, class X, class Draws> static Token write_token(X& x, Draws& draws) {
    if constexpr (M::sticky)
      return Token{x, draws};
    else
      return Token{x};
  }

  void check_chunk(std::string_view argument, const Input<Scalar>& x, Index columns) const {
    detail::check_extent(name, argument, x, inputs(), columns);
    detail::check_not_empty(name, argument, x.cols());
  }

  static void add_gradient(const detail::LinearMap<Scalar>& p, const Matrix& x, const Matrix& dy,
                           Output<Scalar>& dx, detail::LinearMap<Scalar>& grad) {
    detail::add_product(grad.weight, dy, x.transpose(), detail::one_block);
    detail::add_product(dx, p.weight.transpose(), dy, detail::one_block);
  }

  // Skips the projection if signal and weights are those of the trace: a stream reads many times
  // between two writes, and comparing d (N + 2 d) numbers is cheap beside 4 d² N flops.
  void project(const State& state, Trace& trace) const {
    const auto& signal = memory.slots(state);
    if (same_bits(trace.signal, signal) && same_bits(trace.key_weight, key.weight) &&
        same_bits(trace.value_weight, value.weight))
      return;
    trace.signal = signal;
    trace.key_weight = key.weight;
    trace.value_weight = value.weight;
    trace.keys.setZero(inputs(), trace.signal.cols());
    trace.values.setZero(inputs(), trace.signal.cols());
    detail::add_product(trace.keys, key.weight, trace.signal);
    detail::add_product(trace.values, value.weight, trace.signal);
  }

  // Compares bits, many times faster than Eigen's ==. The columns are contiguous.
  template <class A> static bool same_bits(const Matrix& a, const A& b) {
    if (a.rows() != b.rows() || a.cols() != b.cols()) return false;
    const auto bytes = static_cast<std::size_t>(a.size()) * sizeof(Scalar);
    return bytes == 0 || std::memcmp(a.data(), b.data(), bytes) == 0;
  }

  // A memory without slots has output 0, and its empty matrices have no rows for a head to view.
  Index active_heads(const Trace& trace) const { return trace.signal.cols() > 0 ? heads : 0; }

  template <class X> auto head(X&& all, Index h) const {
    const Index rows = inputs() / heads;
    return all.middleRows(h * rows, rows);
  }
};

}  // namespace fw
