#pragma once

#include <concepts>
#include <fastweights/core/check.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/layers/parameters.hpp>
#include <fastweights/layers/sequence_parallel.hpp>

/// \file
/// Here a layer is an object that runs; the functions of this folder build one. It maps a sequence
/// x (D_in×T, one token per column) to y (D_out×T). networks::Network is a layer; a type of your
/// own that has the same members is trained, saved and timed like it. A layer is a record: its
/// Eigen members and nested records are its parameters, its arithmetic members are hyperparameters.
/// Several threads may use one const layer.
///
///     State state = layer.initial_state();
///     typename L::Trace trace;
///     layer.forward(state, x, y, trace, fw::Pass::train);
///     L grad = fw::zero_gradient(layer);
///     layer.backward(x, trace, dy, dx, grad);                 // dx overwritten, grad accumulated
///
/// backward refuses a gradient that is a copy of the weights, `L grad = layer`.
///
/// - State holds what streaming keeps between calls. forward continues from the state, so any split
///   of a sequence gives the same y up to rounding; T = 1 is a streaming step.
/// - Trace holds the buffers of a forward pass and the intermediate results for backward. A trace
///   that is reused with the same T allocates nothing, with two exceptions: a memory's own backward
///   pass (for example that of the key-value cache), where Eigen packs matrices above 128 KiB, and
///   the first sequence of each size that a thread runs through the kernels. T = 1 allocates
///   nothing. (With OpenMP, call Eigen::setNbThreads(1): Eigen's own threads allocate in larger
///   products.)
/// - backward belongs to the last train pass of its trace and treats the initial state as a
///   constant, unless a network is given `{.state = &dstate}`.
/// - y must not overlap x; dx must overlap neither x nor dy.
///
/// All functions throw std::invalid_argument, which names the layer and the argument, when a size
/// does not fit, a result overlaps an argument, grad is the layer itself, a counter of the state is
/// none that its writes can give, or the trace is not from a train pass; nothing is changed then.

namespace fw::inline FASTWEIGHTS_ABI {

/// The views of D×T matrices that a layer reads and writes.
template <class S> using Input = SequenceView<const S, Dynamic>;
/// One token per column, to be overwritten.
template <class S> using Output = SequenceView<S, Dynamic>;

/// The state or trace of a layer without one.
struct NoState {
  static constexpr auto names = fw::names();
};

/// Slow weights with forward and backward over a sequence, a state that continues it, and a trace
/// of what backward needs. The file's description lists the members.
template <class L>
concept Layer = Record<L> && std::copyable<L> && std::copyable<typename L::State> &&
    std::default_initializable<typename L::Trace> &&
    requires(const L& layer, typename L::State& state, typename L::Trace& trace,
             Input<typename L::Scalar> in, Output<typename L::Scalar> out, L& grad, Pass pass) {
  { L::name } -> std::convertible_to<std::string_view>;
  { layer.inputs() } -> std::same_as<Index>;
  { layer.outputs() } -> std::same_as<Index>;
  { layer.initial_state() } -> std::same_as<typename L::State>;
  layer.forward(state, in, out, trace, pass);
  layer.backward(in, trace, in, out, grad);
};

namespace detail {

template <class View>
void check_extent(std::string_view layer, std::string_view argument, const View& view, Index rows,
                  Index columns) {
  if (view.rows() != rows) throw_mismatch(layer, argument, view.rows(), "rows", rows, "the layer");
  if (view.cols() != columns)
    throw_mismatch(layer, argument, view.cols(), "columns", columns, "the sequence");
}

inline void check_not_empty(std::string_view layer, std::string_view argument, Index steps) {
  if (steps < 1)
    throw_invalid({layer, ": ", argument, " has no tokens, the layer expects at least 1"});
}

// Throws if other processes hold parts of the sequence, for layers that take none.
inline void check_whole(std::string_view layer, Pass pass) {
  if (pass.parallel() != nullptr)
    throw_invalid({layer, ": a part of a sequence, this layer takes whole sequences"});
}

// Throws unless the columns of x are `sequences` sequences of equal length.
inline Index check_sequences(std::string_view layer, Index sequences, Index columns) {
  if (sequences < 1 || columns % sequences != 0)
    throw_invalid({layer, ": x has ", std::to_string(columns), " columns, a state of ",
                   std::to_string(sequences), " sequences expects a multiple of ",
                   std::to_string(sequences)});
  return sequences;
}

// Throws if a result shares numbers with what it is computed from.
template <class S>
void check_layer_apart(std::string_view layer, std::string_view result, const Output<S>& to,
                       std::string_view argument, const Input<S>& from) {
  const Region a = region_of(result, to), b = region_of(argument, from);
  if (overlap(a, b)) throw_overlap(layer, a, b);
}

template <class L, class S>
void check_forward_sizes(const L& layer, const Input<S>& x, const Output<S>& y) {
  check_extent(L::name, "x", x, layer.inputs(), x.cols());
  check_extent(L::name, "y", y, layer.outputs(), x.cols());
  check_layer_apart(L::name, "y", y, "x", x);
}
template <class L, class S>
void check_forward(const L& layer, const Input<S>& x, const Output<S>& y) {
  check_not_empty(L::name, "x", x.cols());
  check_forward_sizes(layer, x, y);
}

inline void check_trained(std::string_view layer, Index trained, Index steps) {
  if (trained == 0 && steps > 0)
    throw_invalid(
        {layer,
         ": backward without a train pass, expected forward with fw::Pass::train before it"});
}

// `trained` is the number of tokens in the trace.
template <class L, class S>
void check_backward(const L& layer, const Input<S>& x, Index trained, const Input<S>& dy,
                    const Output<S>& dx, const L& grad) {
  check_trained(L::name, trained, x.cols());
  if (trained != x.cols())
    throw_mismatch(L::name, "x", x.cols(), "columns", trained, "the last train pass");
  check_extent(L::name, "x", x, layer.inputs(), trained);
  check_extent(L::name, "dy", dy, layer.outputs(), trained);
  check_extent(L::name, "dx", dx, layer.inputs(), trained);
  check_layer_apart(L::name, "dx", dx, "x", x);
  check_layer_apart(L::name, "dx", dx, "dy", dy);
  check_gradient(L::name, layer, grad);
}

}  // namespace detail

}  // namespace fw
