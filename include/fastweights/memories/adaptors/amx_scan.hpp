#pragma once

#include <fastweights/algorithms/scan.hpp>
#include <fastweights/kernels/amx/delta_scan.hpp>
#include <fastweights/kernels/amx/tiles.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

namespace fw {

/// What the factors of matrix products are rounded to; sums and the state are float. Errors are
/// ‖Δ‖/‖exact‖ of outputs and state over a sequence, for keys of length 1 and 0 ≤ β ≤ 1, and do not
/// grow with it; first for 32 and more random directions, then for keys with cosines up to 0.99.
enum class AmxPrecision {
  bf16,  ///< 8 bits: 6e-3; outputs 2.5e-2, the state 4e-2
  split  ///< 16 bits, in two bf16 and three products: 1.2e-5; outputs 5e-5, the state 8e-5
};

namespace detail {
inline namespace FASTWEIGHTS_KERNELS {

template <class Tiles, class M>
void tile_scan(const M& m, StateOf<M>& state, const WriteSequence<M>& inputs,
               const ReadSequence<M>& queries, const OutSequence<M>& outputs,
               AmxPrecision precision) {
  auto tokens = tokens_of<M>(inputs, queries, outputs);
  tokens.beta = columns_of(inputs.beta);
  const Index dv = m.signature().dv, dk = m.signature().dk;
  if (precision == AmxPrecision::split)
    TileDelta<Tiles, 2>(dk, dv).run(state.W, tokens, inputs.key.cols());
  else
    TileDelta<Tiles, 1>(dk, dv).run(state.W, tokens, inputs.key.cols());
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace detail

inline namespace FASTWEIGHTS_AMX {

/// As scan, by the matrix unit of Intel's processors (AMX, from Sapphire Rapids on) where
/// amx_permitted(); elsewhere it is scan, to the last bit. No other function of the library uses
/// this unit. For the delta rule in float, 64 tokens at a time in matrix form:
///
///     E = (I + strictly lower(diag(β) K Kᵀ))⁻¹ diag(β) (V − K Wᵀ)
///     Y = Q Wᵀ + lower(Q Kᵀ) E,   W ← W + Eᵀ K
///
///     fw::amx_scan(memory, state, {K, V, beta}, {Q}, {Y}, fw::AmxPrecision::split);
///
/// Shapes: as scan, K and Q d_k×T, V and Y d_v×T, β T; in the equations they lie a token a row.
/// Cost a token: 6 d_v d_k + 192 (d_v + d_k) flops of tiles (AmxPrecision::split: three times as
/// many), and roundings; sizes count as multiples of 32, a chunk of less than 64 tokens as 32 or
/// 64. For long sequences and d_k, d_v from 128 on: below, what is done besides the tiles takes
/// about as long as scan. The room is the thread's: no heap after the first call of a size. The
/// thread's tiles are configured for the call and released after it.
///
/// Errors: see AmxPrecision. Inputs are to be finite, and what they come to below 3e38. Outputs
/// must not overlap inputs. Throws std::invalid_argument, naming the member, when a size does not
/// fit; nothing is changed.
///
/// Chunked form: Yang et al. 2024, arXiv 2406.06484, section 3. Products of split numbers: Henry,
/// Tang, Heinecke 2019, arXiv 1904.06376.
template <int Dk, int Dv, class M = DeltaRule<float, Dk, Dv>>
void amx_scan(const DeltaRule<float, Dk, Dv>& m, StateOf<M>& state, WriteSequence<M> inputs,
              ReadSequence<M> queries, OutSequence<M> outputs,
              [[maybe_unused]] AmxPrecision precision) {
#if FASTWEIGHTS_HAS_AMX
  if (amx_permitted()) {
    const Index steps = detail::steps_of(inputs, m.signature().write());
    detail::check_scan(m, state, inputs, queries, steps);
    detail::check_outputs(m, queries, outputs, steps);
    detail::tile_scan<detail::AmxTiles>(m, state, inputs, queries, outputs, precision);
    return;
  }
#endif
  scan(m, state, inputs, queries, outputs);
}

}  // namespace FASTWEIGHTS_AMX

}  // namespace fw
