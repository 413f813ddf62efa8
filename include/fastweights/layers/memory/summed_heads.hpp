#pragma once

#include <fastweights/core/errors.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI {

/// The options of a SummedHeads.
struct SummedHeadsOptions {
  Index d_model;
  Index heads = 1;
  bool causal = true;           ///< else every token reads the writes of all tokens of the call
  bool bias = false;            ///< of the slow projections and of the output
  bool parallel = false;        ///< heads in parallel, see for_each_head; not for real-time threads
  bool allow_unstable = false;  ///< accept a memory that long keys can make unstable
};

/// Heads of any memory that is read with a query. All heads share one output projection, which is
/// applied to the sum of their outputs:
///
///     k, q, v = W_k x, W_q x, W_v x   of every head      y = W_P Σ_h memory_h(k, v, q)
///
/// With LinearAttention and tokens as rows this is Σ_h Q_h K_hᵀ V_h W_P, a linear transformer
/// without normaliser. In the causal form every token reads the writes up to its own; in the full
/// form all writes precede all reads. Other inputs of a memory (β, α) are computed as in
/// FastWeightLayer, which has an output projection for each head.
///
/// Shapes: x, y d_model×T, or d_model×BT for B concatenated sequences, W_P d_model×d_v. Cost per
/// token: 2 d_model times the rows of all projections, plus H steps of the memory; the full form
/// reads twice. In the full form a call must contain the whole sequence: a split changes the
/// result. Throws std::invalid_argument when a size does not fit, for the full form of a memory
/// without write_vjp and read_vjp, or for a delta rule whose keys nothing normalises, unless
/// `allow_unstable` is set. Katharopoulos et al. 2020, arXiv 2006.16236, eq. 5–8 with φ = id,
/// without the denominator.
template <Memory M> struct SummedHeads {
  using Scalar = typename M::Scalar;
  using Signature = typename M::Signature;             ///< what the memory writes and reads
  using Writes = typename FastWeightLayer<M>::Writes;  ///< how x becomes what the heads write
  using Reads = typename FastWeightLayer<M>::Reads;    ///< how x becomes what the heads read with
  using Matrix = Eigen::Matrix<Scalar, Dynamic, Dynamic>;
  static constexpr std::string_view name = "SummedHeads";
  static_assert(!learns_initial_state<M>(),
                "SummedHeads: starts from a zero state, in which this memory writes nothing; "
                "fw::networks::self_referential learns the initial state");
  static_assert(
      !KeepsSlowWeights<M>,
      "SummedHeads: the memory has slow weights of its own, which FastWeightLayer learns");
  static_assert(member_count<ReadSequence<M>> > 0,
                "SummedHeads: the memory takes no query; FastWeightLayer is for recurrent ones");

  typename Writes::Projections write;  ///< one projection per member that is written
  typename Reads::Projections read;    ///< one projection per member that is read with
  /// W_o.
  Linear<Scalar> output;
  M memory;
  Index heads;
  bool causal;  ///< whether a token reads only earlier tokens and itself
  bool parallel;
  static constexpr auto names =
      fw::names("write", "read", "output", "memory", "heads", "causal", "parallel");

  struct State {
    std::vector<StateOf<M>> heads;  ///< one per head of the first sequence, then of the second, …
    static constexpr auto names = fw::names("heads");
  };
  struct Trace {
    Writes write;
    Reads read;
    Matrix out, sum;                          ///< the heads' outputs and their sum
    std::vector<Checkpoints<M>> checkpoints;  ///< in the order of the states
    std::vector<StateOf<M>> final_states;     ///< the states that the full form reads
    Index sequences = 1;                      ///< B of the last pass
    Index trained = 0;       ///< tokens of the last pass if it was a train pass, else 0
    Relay* relay = nullptr;  ///< that of the last pass
    Matrix dsum, zeros;      ///< backward's buffers
    std::vector<StateOf<M>> dstate;
  };

  /// Parameters are zero until initialised or loaded.
  SummedHeads(SummedHeadsOptions o, M m) : SummedHeads(checked(o), m, m.signature()) {}

  Index inputs() const { return output.outputs(); }
  Index outputs() const { return output.outputs(); }
  /// The state of `sequences` concatenated sequences.
  State initial_state(Index sequences = 1) const {
    detail::check_size<Dynamic>(name, "sequences", sequences);
    return {std::vector<StateOf<M>>(static_cast<std::size_t>(heads * sequences),
                                    fw::initial_state(memory))};
  }
  void check_state(const State& state) const {
    detail::check_heads(name, state.heads, heads * sequences(state), memory);
  }
  /// B of a state.
  Index sequences(const State& state) const {
    return detail::sequence_count(static_cast<Index>(state.heads.size()), heads);
  }

  void forward(State& state, Input<Scalar> x, Output<Scalar> y, Trace& trace,
               Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    check_state(state);
    if (!causal) detail::check_whole(name, pass);
    const Index sequences = detail::check_sequences(name, this->sequences(state), x.cols());
    detail::check_capacities(state.heads, memory, x.cols() / sequences);
    const auto signature = memory.signature();
    trace.write.forward(write, signature.write(), heads, key_rows(), IdentityMap{}, x);
    trace.read.forward(read, signature.read(), heads, key_rows(), IdentityMap{}, x);
    trace.out.resize(heads * value_rows(), x.cols());
    trace.trained = 0;
    trace.sequences = sequences;
    trace.relay = pass.relay();
    trace.checkpoints.resize(state.heads.size());
    detail::for_each_slice_forward(heads, sequences, parallel, pass.relay(), state.heads,
                                   [&](const detail::HeadSlice& slice, std::size_t i) {
                                     run_head(state.heads[i], trace, slice, i, pass);
                                   });
    trace.sum = trace.out.topRows(value_rows());
    for (Index h = 1; h < heads; ++h)
      trace.sum += trace.out.middleRows(h * value_rows(), value_rows());
    Nothing none;
    output.forward(none, trace.sum, y, none);
    if (!pass.trains()) return;
    if (!causal) trace.final_states = state.heads;
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
    if (!causal) trace.zeros.setZero(value_rows(), x.cols());
    detail::for_each_slice_backward(
        heads, trace, parallel,
        [&](const detail::HeadSlice& slice, std::size_t i, StateOf<M>& dstate) {
          if (!causal) read_backward(trace, slice, i, dstate);
          head_backward(trace, slice, i, causal ? trace.dsum : trace.zeros, dstate);
        });
    dx.setZero();
    const auto signature = memory.signature();
    trace.write.backward(write, signature.write(), key_rows(), IdentityMap{}, x, dx, grad.write);
    trace.read.backward(read, signature.read(), key_rows(), IdentityMap{}, x, dx, grad.read);
  }

 private:
  // Whether the memory can read all queries after all writes.
  static constexpr bool has_full_form = PureRead<M> && StepDifferentiable<M>;

  SummedHeads(const SummedHeadsOptions& o, const M& m, const Signature& signature)
      : write(Writes::projections(signature.write(), o.d_model, o.heads, rows(signature.read()),
                                  o.bias)),
        read(Reads::projections(signature.read(), o.d_model, o.heads, rows(signature.read()),
                                o.bias)),
        output(rows(signature.out()), o.d_model, o.bias),
        memory(m),
        heads(o.heads),
        causal(o.causal),
        parallel(o.parallel) {
    detail::check_one_token_writes(name, m);
    if (!o.allow_unstable)
      detail::check_stable_keys(name, memory, IdentityMap{}, key_rows(),
                                "a memory that normalises its keys, such as "
                                "fw::FeatureMapped<Memory, fw::L2Normalise>, or set "
                                "SummedHeadsOptions::allow_unstable");
  }
  static const SummedHeadsOptions& checked(const SummedHeadsOptions& o) {
    detail::check_size<Dynamic>(name, "d_model", o.d_model);
    detail::check_size<Dynamic>(name, "heads", o.heads);
    if (!o.causal && !has_full_form)
      detail::throw_invalid({name, ": the full form of ", M::name,
                             " was requested, expected a memory with write_vjp, read_vjp and "
                             "a read that does not change the state"});
    return o;
  }

  template <class Members> static Index rows(const Members& sizes) {
    return std::get<0>(members(sizes)).rows;
  }
  Index key_rows() const { return rows(memory.signature().read()); }
  Index value_rows() const { return rows(memory.signature().out()); }

  // The gradient of the heads' outputs in one sequence, the same for all heads.
  OutGradSequence<M> gradient_of(const Matrix& dout, const detail::HeadSlice& slice) const {
    return {detail::slice_of<member_t<OutGradSequence<M>, 0>>(
        dout, value_rows(), {0, slice.sequence, slice.sequences})};
  }

  void run_head(StateOf<M>& state, Trace& trace, const detail::HeadSlice& slice, std::size_t i,
                Pass pass) const {
    const auto signature = memory.signature();
    const auto inputs = trace.write.template sequence<WriteSequence<M>>(signature.write(), slice);
    const auto queries = trace.read.template sequence<ReadSequence<M>>(signature.read(), slice);
    const OutSequence<M> out{
        detail::slice_of<member_t<OutSequence<M>, 0>>(trace.out, value_rows(), slice)};
    if constexpr (Differentiable<M>)
      if (pass.trains()) fw::scan(memory, state, inputs, queries, out, trace.checkpoints[i]);
    if (!pass.trains() || !Differentiable<M>) fw::scan(memory, state, inputs, queries, out);
    if constexpr (has_full_form)
      for (Index t = 0; !causal && t < detail::steps_of(queries, signature.read()); ++t)
        memory.read(std::as_const(state),
                    detail::token_at<ReadToken<M>>(queries, signature.read(), t),
                    detail::token_at<OutToken<M>>(out, signature.out(), t));
  }

  void head_backward(Trace& trace, const detail::HeadSlice& slice, std::size_t i,
                     const Matrix& dout, StateOf<M>& dstate) const {
    const auto signature = memory.signature();
    fw::backward(memory, trace.checkpoints[i],
                 trace.write.template sequence<WriteSequence<M>>(signature.write(), slice),
                 trace.read.template sequence<ReadSequence<M>>(signature.read(), slice),
                 gradient_of(dout, slice), dstate,
                 trace.write.template gradient<WriteGradSequence<M>>(signature.write(), slice),
                 trace.read.template gradient<ReadGradSequence<M>>(signature.read(), slice));
  }

  // The backward pass of the reads in the full form, all of the final state.
  void read_backward(Trace& trace, const detail::HeadSlice& slice, std::size_t i,
                     StateOf<M>& dstate) const {
    if constexpr (has_full_form) {
      const auto sizes = memory.signature().read();
      const auto out = memory.signature().out();
      const auto queries = trace.read.template sequence<ReadSequence<M>>(sizes, slice);
      const auto dqueries = trace.read.template gradient<ReadGradSequence<M>>(sizes, slice);
      for (Index t = 0; t < detail::steps_of(queries, sizes); ++t)
        memory.read_vjp(trace.final_states[i], detail::token_at<ReadToken<M>>(queries, sizes, t),
                        detail::token_at<OutGradToken<M>>(gradient_of(trace.dsum, slice), out, t),
                        dstate, detail::token_at<ReadGradToken<M>>(dqueries, sizes, t));
    }
  }
};

}  // namespace fw
