#pragma once

#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fw {

struct SummedHeadsOptions {
  Index d_model;
  Index heads = 1;
  bool causal = true;     ///< else every token reads what all tokens of the call have written
  bool bias = false;      ///< of the slow projections and of the output
  bool parallel = false;  ///< heads at the same time, see for_each_head; not for real-time threads
};

/// Heads around any memory that is read with a query, which share one output projection, so that
/// their answers are summed:
///
///     k, q, v = W_k x, W_q x, W_v x   of every head      y = W_P Σ_h memory_h(k, v, q)
///
/// With LinearAttention that is Σ_h Q_h K_hᵀ V_h W_P of a linear transformer without normaliser,
/// tokens as rows: causal, or full, where all is written before anything is read. What else a
/// memory takes (β, α) is made as in FastWeightLayer, which has an output projection for each head.
///
/// Shapes: x, y d_model×T, W_P d_model×d_v. Cost a token: 2 d_model times the rows of all
/// projections, plus H steps of the memory; the full form reads twice. In the full form a call is a
/// whole sequence, and any split of it is another one. Throws std::invalid_argument when a size
/// does not fit, or for a full form of a memory without write_vjp and read_vjp.
/// Katharopoulos et al. 2020, arXiv 2006.16236, eq. 5–8 with φ = id, without the denominator.
template <Memory M> struct SummedHeads {
  using Scalar = typename M::Scalar;
  using Signature = typename M::Signature;
  using Writes = typename FastWeightLayer<M>::Writes;
  using Reads = typename FastWeightLayer<M>::Reads;
  using Matrix = Eigen::Matrix<Scalar, Dynamic, Dynamic>;
  static constexpr std::string_view name = "SummedHeads";
  static_assert(!learns_initial_state<M>(),
                "SummedHeads: starts from a zero state, into which this memory writes nothing; "
                "SelfReferentialLayer learns another");
  static_assert(
      !KeepsSlowWeights<M>,
      "SummedHeads: the memory has slow weights of its own, which FastWeightLayer learns");
  static_assert(member_count<ReadSequence<M>> > 0,
                "SummedHeads: the memory takes no query; FastWeightLayer is for recurrent ones");

  typename Writes::Maps write;
  typename Reads::Maps read;
  Linear<Scalar> output;
  M memory;
  Index heads;
  bool causal;
  bool parallel;
  static constexpr auto names =
      fw::names("write", "read", "output", "memory", "heads", "causal", "parallel");

  struct State {
    std::vector<StateOf<M>> heads;
    static constexpr auto names = fw::names("heads");
  };
  struct Trace {
    Writes write;
    Reads read;
    Matrix out, sum;                   ///< what the heads answer, and their sum
    std::vector<Checkpoints<M>> kept;  ///< one a head
    std::vector<StateOf<M>> written;   ///< what the full form read from
    Index trained = 0;                 ///< tokens of the last pass if it was a train pass, else 0
    Matrix dsum, zeros;                ///< backward's buffers
    std::vector<StateOf<M>> dstate;
  };

  /// Parameters are zero until initialised or loaded.
  SummedHeads(SummedHeadsOptions o, M m) : SummedHeads(checked(o), m, m.signature()) {}

  Index inputs() const { return output.outputs(); }
  Index outputs() const { return output.outputs(); }
  State initial_state() const {
    return {std::vector<StateOf<M>>(static_cast<std::size_t>(heads), fw::initial_state(memory))};
  }

  void forward(State& state, Input<Scalar> x, Output<Scalar> y, Trace& trace,
               Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    detail::check_heads(name, state.heads, heads, memory);
    const auto signature = memory.signature();
    trace.write.forward(write, signature.write(), heads, key_rows(), IdentityMap{}, x);
    trace.read.forward(read, signature.read(), heads, key_rows(), IdentityMap{}, x);
    trace.out.resize(heads * value_rows(), x.cols());
    trace.trained = 0;
    trace.kept.resize(static_cast<std::size_t>(heads));
    for_each_head(heads, parallel, [&](Index h) { run_head(state, trace, h, pass); });
    trace.sum = trace.out.topRows(value_rows());
    for (Index h = 1; h < heads; ++h)
      trace.sum += trace.out.middleRows(h * value_rows(), value_rows());
    Nothing none;
    output.forward(none, trace.sum, y, none);
    if (pass == Pass::infer) return;
    if (!causal) trace.written = state.heads;
    trace.trained = x.cols();
  }

  void backward(Input<Scalar> x, Trace& trace, Input<Scalar> dy, Output<Scalar> dx,
                SummedHeads& grad) const requires Differentiable<M> {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    Nothing none;
    trace.dsum.resize(value_rows(), x.cols());
    output.backward(trace.sum, none, dy, trace.dsum, grad.output);
    trace.write.clear_gradient();
    trace.read.clear_gradient();
    const auto states = static_cast<std::size_t>(parallel ? heads : 1);
    trace.dstate.assign(states, trace.kept[0].states[0]);  // of its size, in place
    if (!causal) trace.zeros.setZero(value_rows(), x.cols());
    for_each_head(heads, parallel, [&](Index h) {
      auto& dstate = trace.dstate[static_cast<std::size_t>(parallel ? h : 0)];
      set_zero(dstate);
      if (!causal) read_backward(trace, h, dstate);
      head_backward(trace, h, causal ? trace.dsum : trace.zeros, dstate);
    });
    dx.setZero();
    const auto signature = memory.signature();
    trace.write.backward(write, signature.write(), key_rows(), IdentityMap{}, x, dx, grad.write);
    trace.read.backward(read, signature.read(), key_rows(), IdentityMap{}, x, dx, grad.read);
  }

 private:
  // Everything can be written before anything is read.
  static constexpr bool reads_apart = PureRead<M> && StepDifferentiable<M>;

  SummedHeads(const SummedHeadsOptions& o, const M& m, const Signature& signature)
      : write(Writes::maps(signature.write(), o.d_model, o.heads, rows(signature.read()), o.bias)),
        read(Reads::maps(signature.read(), o.d_model, o.heads, rows(signature.read()), o.bias)),
        output(rows(signature.out()), o.d_model, o.bias),
        memory(m),
        heads(o.heads),
        causal(o.causal),
        parallel(o.parallel) {
    detail::check_one_a_token(name, m);
  }
  static const SummedHeadsOptions& checked(const SummedHeadsOptions& o) {
    detail::check_size<Dynamic>(name, "d_model", o.d_model);
    detail::check_size<Dynamic>(name, "heads", o.heads);
    if (!o.causal && !reads_apart)
      throw std::invalid_argument(std::string(name) + ": the full form of " + std::string(M::name) +
                                  " was asked for, expected a memory with write_vjp, read_vjp and "
                                  "a read that changes nothing");
    return o;
  }

  template <class Members> static Index rows(const Members& sizes) {
    return std::get<0>(members(sizes)).rows;
  }
  Index key_rows() const { return rows(memory.signature().read()); }
  Index value_rows() const { return rows(memory.signature().out()); }

  OutSequence<M> answers(Trace& trace, Index h) const {
    return {member_t<OutSequence<M>, 0>(trace.out.data() + h * value_rows(), value_rows(),
                                        trace.out.cols(), trace.out.rows())};
  }
  static OutGradSequence<M> gradients(const Matrix& dout) {
    return {member_t<OutGradSequence<M>, 0>(dout)};
  }

  void run_head(State& state, Trace& trace, Index h, Pass pass) const {
    const auto i = static_cast<std::size_t>(h);
    const auto signature = memory.signature();
    const auto inputs = trace.write.template sequence<WriteSequence<M>>(signature.write(), {h});
    const auto queries = trace.read.template sequence<ReadSequence<M>>(signature.read(), {h});
    const auto out = answers(trace, h);
    if constexpr (Differentiable<M>)
      if (pass == Pass::train)
        fw::scan(memory, state.heads[i], inputs, queries, out, trace.kept[i]);
    if (pass == Pass::infer || !Differentiable<M>)
      fw::scan(memory, state.heads[i], inputs, queries, out);
    if constexpr (reads_apart)
      for (Index t = 0; !causal && t < detail::steps_of(queries, signature.read()); ++t)
        memory.read(std::as_const(state.heads[i]),
                    detail::token_at<ReadToken<M>>(queries, signature.read(), t),
                    detail::token_at<OutToken<M>>(out, signature.out(), t));
  }

  void head_backward(Trace& trace, Index h, const Matrix& dout, StateOf<M>& dstate) const {
    const auto signature = memory.signature();
    fw::backward(memory, trace.kept[static_cast<std::size_t>(h)],
                 trace.write.template sequence<WriteSequence<M>>(signature.write(), {h}),
                 trace.read.template sequence<ReadSequence<M>>(signature.read(), {h}),
                 gradients(dout), dstate,
                 trace.write.template gradient<WriteGradSequence<M>>(signature.write(), {h}),
                 trace.read.template gradient<ReadGradSequence<M>>(signature.read(), {h}));
  }

  // The reads of the full form, all of the state that all tokens have written.
  void read_backward(Trace& trace, Index h, StateOf<M>& dstate) const {
    if constexpr (reads_apart) {
      const auto asked = memory.signature().read();
      const auto out = memory.signature().out();
      const auto queries = trace.read.template sequence<ReadSequence<M>>(asked, {h});
      const auto dqueries = trace.read.template gradient<ReadGradSequence<M>>(asked, {h});
      for (Index t = 0; t < detail::steps_of(queries, asked); ++t)
        memory.read_vjp(trace.written[static_cast<std::size_t>(h)],
                        detail::token_at<ReadToken<M>>(queries, asked, t),
                        detail::token_at<OutGradToken<M>>(gradients(trace.dsum), out, t), dstate,
                        detail::token_at<ReadGradToken<M>>(dqueries, asked, t));
    }
  }
};

}  // namespace fw
