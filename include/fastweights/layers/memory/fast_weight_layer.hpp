#pragma once

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/algorithms/heads.hpp>
#include <fastweights/core/errors.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/layers/memory/head_inputs.hpp>
#include <fastweights/layers/memory/stable_keys.hpp>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// The record of a memory's own slow weights, or an empty record.
template <class M> struct SlowWeightsOf { using type = Nothing; };
template <KeepsSlowWeights M> struct SlowWeightsOf<M> { using type = decltype(StateOf<M>::slow); };

}  // namespace detail

/// No normalisation of the heads' outputs.
struct NoNorm {
  using Trace = Nothing;
  /// Takes the rows of a head, as the norms do.
  explicit NoNorm(Index) {}
  static constexpr auto names = fw::names();
};

/// The options of a FastWeightLayer.
struct FastWeightOptions {
  Index d_model;
  Index heads = 1;
  Index d_key = 0;        ///< rows of a key before the feature map; 0: those of the memory's keys
  double scale = 1;       ///< factor of the memory's output
  bool bias = false;      ///< of the slow projections and of the output
  bool parallel = false;  ///< heads in parallel, see for_each_head; not for real-time threads
  bool allow_unstable = false;  ///< accept a map whose keys can make the memory unstable
};

/// A multi-head layer of slow weights around any memory: the slow weights project x to what every
/// head writes and reads, and project the heads' outputs to y. The memory's signature determines
/// the projections. For the gated delta rule, per head:
///
///     k, q = φ(W_k x), φ(W_q x)     v = W_v x     β = sigmoid(W_β x)     α = sigmoid(W_α x)^(1/16)
///     o = scale · memory(k, v, β, α, q)            y = W_o [norm(o_1); …; norm(o_H)]
///
/// If the memory has slow weights of its own, as the recurrent delta net does, `slow` holds those
/// of every head. Shapes: x, y d_model×T, or d_model×BT for B concatenated sequences; the heads are
/// stacked rows. `norm` has one set of weights for all heads (NoNorm, RmsNorm, LayerNorm). Cost per
/// token: 2 d_model times the rows of all projections, plus H steps of the memory. A delta rule
/// needs a map that bounds the length of keys, such as L2Normalise or SumNormalised<EluPlusOne>.
/// Throws std::invalid_argument when a size does not fit. Schlag, Irie, Schmidhuber 2021, arXiv
/// 2102.11174, section 4; its language models use the output scale 1/√d_head; the output norm is
/// that of Yang et al. 2024, arXiv 2406.06484.
template <Memory M, FeatureMap KeyMap = IdentityMap, class OutputNorm = NoNorm>
struct FastWeightLayer {
  using Scalar = typename M::Scalar;
  using Signature = typename M::Signature;  ///< what the memory writes and reads
  /// How x becomes what the heads write.
  using Writes = detail::HeadInputs<Scalar, Signature::template Write>;
  /// How x becomes what the heads read with.
  using Reads = detail::HeadInputs<Scalar, Signature::template Read>;
  /// Those of the memory, or an empty record.
  using SlowWeights = typename detail::SlowWeightsOf<M>::type;
  using Matrix = Eigen::Matrix<Scalar, Dynamic, Dynamic>;
  static constexpr std::string_view name = "FastWeightLayer";
  static_assert(!learns_initial_state<M>(),
                "FastWeightLayer: starts from a zero state, in which this memory writes nothing; "
                "fw::networks::self_referential learns the initial state");
  static_assert(member_count<OutSequence<M>> == 1, "FastWeightLayer: a memory has one output");

  /// W_k, W_v, W_β, …: one projection per member that is written.
  typename Writes::Projections write;
  /// W_q, …: one projection per member that is read with.
  typename Reads::Projections read;
  OutputNorm norm;
  /// W_o, d_model×(rows of all heads).
  Linear<Scalar> output;
  std::vector<SlowWeights> slow;  ///< those of every head, or empty
  M memory;
  KeyMap map;
  Index heads;
  Index d_key;   ///< rows of a key before the feature map
  double scale;  ///< the factor of the memory's outputs
  bool parallel;
  static constexpr auto names = fw::names("write", "read", "norm", "output", "slow", "memory",
                                          "map", "heads", "d_key", "scale", "parallel");

  struct State {
    std::vector<StateOf<M>> heads;  ///< one per head of the first sequence, then of the second, …
    static constexpr auto names = fw::names("heads");
  };
  struct Trace {
    Writes write;
    Reads read;
    Matrix out, normed;  ///< the heads' outputs before and after the norm
    typename OutputNorm::Trace norm;
    std::vector<Checkpoints<M>> checkpoints;  ///< in the order of the states
    Index sequences = 1;                      ///< B of the last pass
    Index trained = 0;       ///< tokens of the last pass if it was a train pass, else 0
    Relay* relay = nullptr;  ///< that of the last pass
    Matrix dout, dnormed;    ///< backward's buffers
    std::vector<StateOf<M>> dstate;
  };

  /// Parameters are zero until initialised or loaded, but for those of the memory, which start as
  /// in its initial state. Throws std::invalid_argument unless the
  /// number of features of the map is that of the memory's keys, and the memory is stable for the
  /// map's keys or `allow_unstable` is set.
  FastWeightLayer(FastWeightOptions o, M m, KeyMap key_map = {})
      : FastWeightLayer(checked(o), m, key_map, m.signature().out()) {}

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
    const Index sequences = detail::check_sequences(name, this->sequences(state), x.cols());
    detail::check_capacities(state.heads, memory, x.cols() / sequences);
    const auto signature = memory.signature();
    trace.write.forward(write, signature.write(), heads, d_key, map, x);
    trace.read.forward(read, signature.read(), heads, d_key, map, x);
    trace.out.resize(heads * out_size().rows, out_size().width * x.cols());
    trace.trained = 0;
    trace.sequences = sequences;
    trace.relay = pass.relay();
    scan_heads(state, trace, pass);
    if (scale != 1) trace.out *= Scalar(scale);
    Nothing none;
    output.forward(none, detail::with_rows(normalise(trace, pass), output.inputs()), y, none);
    if (pass.trains()) trace.trained = x.cols();
  }

  void backward(Input<Scalar> x, Trace& trace, Input<Scalar> dy, Output<Scalar> dx,
                FastWeightLayer& grad) const requires Differentiable<M> {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    Nothing none;
    const Matrix& normed = normalises ? trace.normed : trace.out;
    Matrix& dnormed = normalises ? trace.dnormed : trace.dout;
    dnormed.resize(normed.rows(), normed.cols());
    output.backward(detail::with_rows(normed, output.inputs()), none, dy,
                    detail::with_rows(dnormed, output.inputs()), grad.output);
    normalise_backward(trace, grad);
    if (scale != 1) trace.dout *= Scalar(scale);
    heads_backward(trace, grad);
    dx.setZero();
    const auto signature = memory.signature();
    trace.write.backward(write, signature.write(), d_key, map, x, dx, grad.write);
    trace.read.backward(read, signature.read(), d_key, map, x, dx, grad.read);
  }

 private:
  static constexpr bool normalises = !std::is_same_v<OutputNorm, NoNorm>;

  FastWeightLayer(const FastWeightOptions& o, const M& m, const KeyMap& key_map,
                  const typename Signature::template Out<Extents>& out)
      : write(
            Writes::projections(m.signature().write(), o.d_model, o.heads, key_size(o, m), o.bias)),
        read(Reads::projections(m.signature().read(), o.d_model, o.heads, key_size(o, m), o.bias)),
        norm(std::get<0>(members(out)).rows),
        output(o.heads * std::get<0>(members(out)).rows *
                   detail::per_token(std::get<0>(members(out))).width,
               o.d_model, o.bias),
        memory(m),
        map(key_map),
        heads(o.heads),
        d_key(key_size(o, m)),
        scale(o.scale),
        parallel(o.parallel) {
    detail::check_one_token_writes(name, m);
    if (map.features(d_key) != key_rows(m))
      detail::throw_mismatch(name, "the feature map", map.features(d_key), "features", key_rows(m),
                             "the memory");
    if (key_rows(m) == 0 && !std::is_same_v<KeyMap, IdentityMap>)
      detail::throw_invalid({name, ": the feature map is ", KeyMap::name,
                             ", expected IdentityMap, as ", M::name, " takes no keys to map"});
    if (!o.allow_unstable)
      detail::check_stable_keys(name, memory, map, d_key,
                                "a map that bounds the length of keys, such as "
                                "FastWeightLayer<Memory, fw::L2Normalise>, or set "
                                "FastWeightOptions::allow_unstable");
    if constexpr (KeepsSlowWeights<M>)
      slow.assign(static_cast<std::size_t>(heads), fw::initial_state(memory).slow);
  }
  static const FastWeightOptions& checked(const FastWeightOptions& o) {
    detail::check_size<Dynamic>(name, "d_model", o.d_model);
    detail::check_size<Dynamic>(name, "heads", o.heads);
    return o;
  }
  // The rows of the memory's keys, 0 for a memory without keys.
  static Index key_rows(const M& m) {
    const Index rows = Reads::key_rows(m.signature().read());
    return rows > 0 ? rows : Writes::key_rows(m.signature().write());
  }
  // The rows of a key before the feature map.
  static Index key_size(const FastWeightOptions& o, const M& m) {
    return o.d_key != 0 ? o.d_key : key_rows(m);
  }

  MemberExtent out_size() const {
    const auto out = memory.signature().out();
    return detail::per_token(std::get<0>(members(out)));
  }

  template <class SequenceRecord, class Stack>
  SequenceRecord outputs_of(Stack& stack, const detail::HeadSlice& slice) const {
    return {detail::slice_of<member_t<SequenceRecord, 0>>(stack, out_size().rows, slice)};
  }

  void scan_heads(State& state, Trace& trace, Pass pass) const {
    const auto signature = memory.signature();
    trace.checkpoints.resize(state.heads.size());
    detail::for_each_slice_forward(
        heads, trace.sequences, parallel, pass.relay(), state.heads,
        [&](const detail::HeadSlice& slice, std::size_t i) {
          const auto inputs =
              trace.write.template sequence<WriteSequence<M>>(signature.write(), slice);
          const auto queries =
              trace.read.template sequence<ReadSequence<M>>(signature.read(), slice);
          const auto out = outputs_of<OutSequence<M>>(trace.out, slice);
          if constexpr (KeepsSlowWeights<M>)
            state.heads[i].slow = slow[static_cast<std::size_t>(slice.head)];
          if constexpr (Differentiable<M>) {
            if (pass.trains()) {
              fw::scan(memory, state.heads[i], inputs, queries, out, trace.checkpoints[i]);
              return;
            }
          }
          fw::scan(memory, state.heads[i], inputs, queries, out);
        });
  }

  void heads_backward(Trace& trace, [[maybe_unused]] FastWeightLayer& grad) const {
    const auto signature = memory.signature();
    trace.write.clear_gradient();
    trace.read.clear_gradient();
    detail::for_each_slice_backward(
        heads, trace, parallel,
        [&](const detail::HeadSlice& slice, std::size_t i, StateOf<M>& dstate) {
          // Those of later parts belong to the process that has them.
          if constexpr (KeepsSlowWeights<M>) set_zero(dstate.slow);
          fw::backward(
              memory, trace.checkpoints[i],
              trace.write.template sequence<WriteSequence<M>>(signature.write(), slice),
              trace.read.template sequence<ReadSequence<M>>(signature.read(), slice),
              outputs_of<OutGradSequence<M>>(trace.dout, slice), dstate,
              trace.write.template gradient<WriteGradSequence<M>>(signature.write(), slice),
              trace.read.template gradient<ReadGradSequence<M>>(signature.read(), slice));
          if constexpr (KeepsSlowWeights<M>)
            add_parameters(grad.slow[static_cast<std::size_t>(slice.head)], dstate.slow);
        });
  }

  // The norm treats every head of every token as one token.
  Matrix& normalise(Trace& trace, [[maybe_unused]] Pass pass) const {
    if constexpr (normalises) {
      trace.normed.resize(trace.out.rows(), trace.out.cols());
      Nothing none;
      norm.forward(none, by_head(trace.out), by_head(trace.normed), trace.norm, pass);
      return trace.normed;
    } else {
      return trace.out;
    }
  }
  void normalise_backward(Trace& trace, FastWeightLayer& grad) const {
    if constexpr (normalises) {
      trace.dout.resize(trace.out.rows(), trace.out.cols());
      norm.backward(by_head(trace.out), trace.norm, by_head(trace.dnormed), by_head(trace.dout),
                    grad.norm);
    }
  }

  auto by_head(Matrix& stacked) const { return detail::with_rows(stacked, out_size().rows); }
};

}  // namespace fw
