#pragma once

#include <fastweights/layers/fast_weights.hpp>
#include <fastweights/networks/operations/full_memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of summed_heads.
struct SummedHeadsOptions {
  Index heads = 1;
  bool causal = true;           ///< else every token reads the writes of all tokens of the pass
  bool bias = false;            ///< of all projections
  bool allow_unstable = false;  ///< accept a memory that long keys can make unstable
};

/// Heads of any memory that is read with a query, which share one output projection:
///
///     k, q, v = W_k x, W_q x, W_v x   of every head      y = W_o Σ_h memory_h(k, v, q)
///
/// With LinearAttention and tokens as rows this is Σ_h Q_h K_hᵀ V_h W_o, a linear transformer
/// without normaliser. In the causal form every token reads the writes up to its own; in the full
/// form all writes precede all reads, and a pass must contain the whole sequence. Weights, other
/// inputs (β, α) and errors are those of fast_weights, whose heads have an output projection each.
/// The full form reads twice, and throws std::invalid_argument for a memory without write_vjp and
/// read_vjp, or one that a read changes. Katharopoulos et al. 2020, arXiv 2006.16236, eq. 5–8 with
/// φ = id, without the denominator.
template <class S, Memory M>
Value<S> summed_heads(const Value<S>& in, const std::string& name, M rule,
                      const SummedHeadsOptions& o = {}) {
  const FastWeightsOptions options{
      .heads = o.heads, .bias = o.bias, .sums_heads = true, .allow_unstable = o.allow_unstable};
  if (o.causal) return fast_weights(in, name, std::move(rule), options);
  if constexpr (ReadsAfterWrites<M>)
    return module(name, in, [&](const Value<S>& x) {
      const AnyMemory<S> any(rule);
      const detail::KeyMap<S> same = detail::key_map<S>(IdentityMap());
      const Index size = detail::key_size(x.builder->path(), any, options, same);
      if (!o.allow_unstable) check_stable_keys(x, rule, IdentityMap(), size);
      const detail::MemoryInputs<S> inputs = detail::memory_inputs(x, any, options, size, same);
      return detail::fast_weights_output(
          x, full_memory(std::move(rule), inputs.written, inputs.queries), options);
    });
  fw::detail::throw_invalid({in.builder->path(name), ": the full form of ", M::name,
                             " was requested, expected a memory with write_vjp, read_vjp and a "
                             "read that does not change the state"});
}

}  // namespace fw::networks
