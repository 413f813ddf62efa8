#pragma once

#include <fastweights/layers/memory/summed_heads.hpp>
#include <fastweights/layers/models/pre_norm_block.hpp>
#include <fastweights/layers/projections/feed_forward.hpp>
#include <fastweights/layers/projections/identity_layer.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// The block of a linear transformer: attention without softmax, whose heads share one output
/// projection, then a token-wise MLP. Both have residuals, and by default no norm. With tokens as
/// the rows of E:
///
///     E ← E + Σ_m Q_m K_mᵀ V_m W_P        E ← E + σ(E W_1) W_2
///
/// The memory M is the attention: LinearAttention for the sum above, DeltaRule, or any other memory
/// that is read with a query. SummedHeadsOptions select the causal (recurrent) or the full form. σ
/// is elementwise: Elementwise<Tanh>, Gelu. Parameters: `mixer` (write, read, output = W_P) and
/// `ffn` (up = W_1, down = W_2, both transposed, because here tokens are columns).
///
///     using Rule = fw::LinearAttention<double>;
///     const Rule rule({.key_size = 8});
///     fw::LinearTransformerBlock<Rule, fw::Elementwise<fw::Tanh>> block(
///         fw::SummedHeads<Rule>({.d_model = 32, .heads = 4}, rule), {32, 64, false});
///
/// Shapes: x, y d_model×T. Cost per token: that of SummedHeads and 4 d_model·hidden flops. Throws
/// std::invalid_argument when a size does not fit. Katharopoulos et al. 2020, arXiv 2006.16236,
/// eq. 1 and 8.
template <Memory M, class Activation = Gelu, template <class> class Norm = IdentityLayer>
using LinearTransformerBlock = PreNormBlock<Norm<typename M::Scalar>, SummedHeads<M>,
                                            FeedForward<typename M::Scalar, Activation>>;

}  // namespace fw
