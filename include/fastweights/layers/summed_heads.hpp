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
  const AnyMemory<S> any(rule);
  detail::check_reads_after_writes(in.builder->path(name), any);
  return module(name, in, [&](const Value<S>& x) {
    const detail::KeyMap<S> same = detail::key_map<S>(IdentityMap());
    const Index size = detail::key_size(x.builder->path(), any, options, same);
    if (!o.allow_unstable) check_stable_keys(x, rule, IdentityMap(), size);
    const detail::MemoryInputs<S> inputs = detail::memory_inputs(x, any, options, size, same);
    const LearnedState<S> slow = detail::slow_weights(*x.builder, any, o.heads);
    return detail::fast_weights_output(
        x, full_memory(any, inputs.written, inputs.queries, "memory", slow), options);
  });
}

}  // namespace fw::networks
