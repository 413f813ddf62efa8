#pragma once

#include <concepts>
#include <fastweights/core/check.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/layers/parameters.hpp>

/// \file
/// A layer maps one sequence x (D_in×T) to y (D_out×T), one token a column. It is a record: its
/// Eigen members and nested records are its parameters, arithmetic members its hyperparameters. A
/// batch is a loop over sequences, which may run in parallel over one const layer. Rnn, Lstm,
/// FastWeightsRnn, FastWeightLayer and CausalConv also take B sequences at once, one behind the
/// other (D×BT), with initial_state(B): slow weights meet what all of them bring in one product.
///
///     State state = layer.initial_state();
///     typename L::Trace trace;
///     layer.forward(state, x, y, trace, fw::Pass::train);
///     L grad = layer;  fw::set_zero_parameters(grad);
///     layer.backward(x, trace, dy, dx, grad);                 // dx overwritten, grad accumulated
///
/// - State is what streaming keeps between calls. forward continues from it, so that any split of a
///   sequence gives the same y up to rounding; T = 1 is a streaming step.
/// - Trace is the room a forward pass works in and what it leaves for backward. Used again with the
///   same T, nothing is allocated, but for what Eigen packs in products of matrices above 128 KiB
///   for a memory's own backward pass, such as the key-value cache has, and for a thread's first
///   sequence of a size through the kernels. T = 1 takes no heap. (With OpenMP, call
///   Eigen::setNbThreads(1): Eigen's own threads take heap in larger products.)
/// - backward belongs to the last train pass of its trace; the initial state counts as a constant.
///   y must not overlap x, and dx neither x nor dy.
///
/// All throw std::invalid_argument, naming the layer and the argument, when a size does not fit or
/// when the trace is not of a train pass; nothing is changed then. (A layer of layers checks what
/// it is given itself; a state or trace put together from parts of several is found by the part.)

namespace fw {

/// Whether a forward pass leaves what backward needs.
enum class Pass { infer, train };

/// What a layer reads and writes: views of D×T matrices.
template <class S> using Input = SequenceView<const S, Dynamic>;
template <class S> using Output = SequenceView<S, Dynamic>;

/// The state or trace of a layer that keeps nothing.
struct Nothing {
  static constexpr auto names = fw::names();
};

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
    throw std::invalid_argument(std::string(layer) + ": " + std::string(argument) +
                                " has no tokens, the layer expects at least 1");
}

// How many sequences there are where a state has `given` of what one sequence has `each` of; 1
// where it does not come out even, so that a check says what one needs.
inline Index sequences_of(Index given, Index each) {
  return each > 0 && given > 0 && given % each == 0 ? given / each : 1;
}

// How many sequences lie one behind the other in x: as many as the state is of.
inline Index check_sequences(std::string_view layer, Index sequences, Index columns) {
  if (sequences < 1 || columns % sequences != 0)
    throw std::invalid_argument(std::string(layer) + ": x has " + std::to_string(columns) +
                                " columns, a state of " + std::to_string(sequences) +
                                " sequences expects a multiple of that");
  return sequences;
}

template <class L, class S>
void check_forward(const L& layer, const Input<S>& x, const Output<S>& y) {
  check_not_empty(L::name, "x", x.cols());
  check_extent(L::name, "x", x, layer.inputs(), x.cols());
  check_extent(L::name, "y", y, layer.outputs(), x.cols());
}

/// `traced` is how many tokens the trace is of.
template <class L, class S>
void check_backward(const L& layer, const Input<S>& x, Index traced, const Input<S>& dy,
                    const Output<S>& dx, const L& grad) {
  if (traced != x.cols())
    throw_mismatch(L::name, "x", x.cols(), "columns", traced, "the last train pass");
  check_extent(L::name, "x", x, layer.inputs(), traced);
  check_extent(L::name, "dy", dy, layer.outputs(), traced);
  check_extent(L::name, "dx", dx, layer.inputs(), traced);
  check_same_shapes(L::name, layer, "grad", grad);
}

}  // namespace detail

}  // namespace fw
