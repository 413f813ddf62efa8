#pragma once

#include <fastweights/continuous/softmax_density.hpp>
#include <fastweights/layers/attention/long_term_layer.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Buffers of attention_reconstruction. Reusing them with the same sizes allocates nothing.
template <class Gate> struct ReconstructionTrace {
  using Matrix = Eigen::Matrix<typename Gate::Scalar, Dynamic, Dynamic>;
  typename Gate::Trace gate;  ///< of the gate
  /// Buffers of the loss and of its gradient.
  Matrix compressed, keys, values, exact, output, dkeys, dvalues, dcompressed, dx, dqueries;
};

/// The attention-reconstruction loss of Compressive Transformers: the error that compressing a
/// chunk X to C(X) causes in the output of attention. It trains a compressor such as StridedConv.
///
///     weight · ‖attn(Q, X) − attn(Q, C(X))‖² / (d T)
///
/// with softmax attention through the layer's key and value projections. Only the compressor C,
/// which is the layer's gate, has gradients (added to grad.gate); tokens, queries and projections
/// are constants.
/// Shapes: X d×L, Q d×T. Cost: 8 d² (L + L/c) + 8 d T (L + L/c) flops. Returns the loss. Throws
/// std::invalid_argument when a size does not fit.
/// Rae et al. 2019, arXiv 1911.05507, section 3.2 and algorithm 2.
template <class M, class Gate>
double attention_reconstruction(const LongTermLayer<M, Gate>& layer,
                                Input<typename M::Scalar> tokens, Input<typename M::Scalar> queries,
                                double weight, ReconstructionTrace<Gate>& trace,
                                LongTermLayer<M, Gate>& grad) {
  using S = typename M::Scalar;
  constexpr std::string_view name = "attention_reconstruction";
  const Index d = layer.inputs();
  detail::check_extent(name, "tokens", tokens, d, tokens.cols());
  detail::check_extent(name, "queries", queries, d, queries.cols());
  detail::check_not_empty(name, "tokens", tokens.cols());
  detail::check_not_empty(name, "queries", queries.cols());
  detail::check_gradient(name, layer, grad);
  const Index rows = d / layer.heads;
  SoftmaxDensity softmax, unused;

  // Attention to x. Leaves the keys and values of x in the trace.
  const auto attend = [&](const auto& x, auto& out) {
    trace.keys.resize(d, x.cols());
    detail::set_product(trace.keys, layer.key.weight, x, detail::one_block);
    trace.values.resize(d, x.cols());
    detail::set_product(trace.values, layer.value.weight, x, detail::one_block);
    out.resize(d, queries.cols());
    for (Index h = 0; h < d; h += rows)
      detail::attend(softmax, Slots(), trace.keys.middleRows(h, rows),
                     trace.values.middleRows(h, rows), queries.middleRows(h, rows),
                     out.middleRows(h, rows), [](Index, const auto&, const auto&) {});
  };
  attend(tokens, trace.exact);
  trace.compressed.resize(d, layer.gate.length(tokens.cols()));
  layer.gate.forward(tokens, trace.compressed, trace.gate);
  attend(trace.compressed, trace.output);

  trace.output -= trace.exact;
  const double each = weight / static_cast<double>(trace.output.size());
  const double loss = each * static_cast<double>(detail::real_part(trace.output.squaredNorm()));
  trace.output *= S(2 * each);
  for (auto* buffer : {&trace.dkeys, &trace.dvalues}) buffer->setZero(d, trace.keys.cols());
  trace.dqueries.setZero(d, queries.cols());
  for (Index h = 0; h < d; h += rows)
    detail::attend_vjp(
        softmax, Slots(), trace.keys.middleRows(h, rows), trace.values.middleRows(h, rows),
        queries.middleRows(h, rows), trace.output.middleRows(h, rows),
        [&](Index, const auto& mixture) { return softmax.zero_gradient(mixture); },
        trace.dkeys.middleRows(h, rows), trace.dvalues.middleRows(h, rows),
        trace.dqueries.middleRows(h, rows), unused);
  trace.dcompressed.resize(d, trace.dkeys.cols());
  detail::set_product(trace.dcompressed, layer.key.weight.transpose(), trace.dkeys,
                      detail::one_block);
  detail::add_product(trace.dcompressed, layer.value.weight.transpose(), trace.dvalues,
                      detail::one_block);
  trace.dx.resize(d, tokens.cols());
  layer.gate.backward(tokens, trace.gate, trace.dcompressed, trace.dx, grad.gate);
  return loss;
}

}  // namespace fw
