#pragma once

#include <fastweights/algorithms/scan.hpp>
#include <fastweights/kernels/amx/delta_scan.hpp>
#include <fastweights/kernels/amx/tiles.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// The precision of the factors of matrix products; sums and the state are float. Each entry gives
/// two errors ‖Δ‖/‖exact‖ of outputs and state over a sequence, for keys of length 1 and 0 ≤ β ≤ 1:
/// for random keys with d_k ≥ 32, and for keys with cosines up to 0.99. Errors do not grow with the
/// length of the sequence.
enum class AmxPrecision {
  bf16,  ///< 8 bits. Random keys: 6e-3. Similar keys: outputs 2.5e-2, state 4e-2
  split  ///< 16 bits in two bf16, three products. Random keys: 1.2e-5. Similar keys: 5e-5 and 8e-5
};

namespace detail {

template <class Tiles, class M>
void tile_scan(const M& m, StateOf<M>& state, const WriteSequence<M>& inputs,
               const ReadSequence<M>& queries, const OutSequence<M>& outputs,
               AmxPrecision precision) {
  const TileTokens tokens{columns_of(inputs.key), columns_of(inputs.value),
                          columns_of(queries.query), columns_of(outputs.output),
                          columns_of(inputs.beta)};
  const Index dv = m.signature().dv, dk = m.signature().dk;
  if (precision == AmxPrecision::split)
    TileDelta<Tiles, 2>(dk, dv).run(state.W, tokens, inputs.key.cols());
  else
    TileDelta<Tiles, 1>(dk, dv).run(state.W, tokens, inputs.key.cols());
}

}  // namespace detail

inline namespace FASTWEIGHTS_AMX {

/// As scan, on the matrix unit of Intel processors (AMX, from Sapphire Rapids on). Without
/// amx_permitted() it calls scan. No other function of the library uses this unit. For the delta
/// rule in float, in the chunkwise form with 64 tokens per chunk:
///
///     U = (I + strictly lower(diag(β) K Kᵀ))⁻¹ diag(β) (V − K Wᵀ)
///     Y = Q Wᵀ + lower(Q Kᵀ) U,   W ← W + Uᵀ K
///
///     fw::amx_scan(memory, state, {K, V, beta}, {Q}, {Y}, fw::AmxPrecision::split);
///
/// Shapes: as scan, K and Q d_k×T, V and Y d_v×T, β T; in the equations each token is a row. Cost
/// per token: 6 d_v d_k + 192 (d_v + d_k) flops of tiles (AmxPrecision::split: three times as
/// many), and conversions to bf16. Sizes are padded to multiples of 32, and a chunk to 32 or 64
/// tokens. Use it for long sequences with d_k, d_v ≥ 128; for smaller sizes the work outside the
/// tiles takes about as long as scan. Buffers belong to the thread: no allocation after the first
/// call of a size. The tiles are configured for the call and released after it.
///
/// Errors: see AmxPrecision. Inputs must be finite, and intermediate results below 3e38.
/// Throws std::invalid_argument as scan does; nothing is changed.
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
    detail::check_outputs(m, state, inputs, queries, outputs, steps);
    detail::tile_scan<detail::AmxTiles>(m, state, inputs, queries, outputs, precision);
    return;
  }
#endif
  scan(m, state, inputs, queries, outputs);
}

}  // namespace FASTWEIGHTS_AMX

}  // namespace fw
