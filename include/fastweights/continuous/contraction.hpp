#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <fastweights/core/member_storage.hpp>

/// \file
/// The contraction of a continuous memory's past, and the sizes that follow from it: how many
/// functions, samples and which ridge keep a number of tokens.
///
/// With N slots (RectangularBasis), M samples of the past, a ridge λ, chunks of L tokens and K
/// chunks written since, four things lose a chunk:
///
/// 1. **Samples.** A slot of the past without a sample becomes 0: M < τN loses the share 1 − M/(τN)
///    of the past with every write. Samples at random places in a slot spread what it holds, about
///    h²/6 of variance for slots of width h = 1/N. M = 4N is within rounding of more samples.
/// 2. **Ridge.** A slot with c targets is multiplied by c/(c + λ). The past has c = M/(τN), so its
///    share after K writes is (1 + λτN/M)^−K. A tenth is lost for λ = M/(10 τ N K). For any basis
///    of total G = Σ_n ψ_n(t), 1 for slots and about N for Gaussians, c is G² as large.
/// 3. **Functions.** With a fixed τ, a chunk has the width w = (1−τ) τ^(K−1), and the spread of all
///    writes is s = h/√(6 (1−τ²)). Its middle keeps erf(w/(√8 s)), which is 0.5/0.9 for s = 0.65 w:
///    half of the chunk is left while N (1−τ) τ^(K−1) ≥ max(1, 0.65/√(1−τ²)). An even contraction
///    with a horizon is one of τ = H/(H + L) when it has met H tokens. Without a horizon w = 1/K
///    and s = h √(K/18): N ≥ K^1.5/2.8, here K^1.5/2, and at least 2 slots for a chunk. Gaussians
///    of width σ count as at most 1/σ slots.
/// 4. **Tokens.** More slots than tokens leave holes: the new chunk's (1−τ) N slots need L tokens.
///    (The first chunk of a stream has all N slots.)
///
/// The number of tokens beside M samples does not matter otherwise: all slots but one hold samples
/// alone, or tokens alone. tests/continuous/continuous_sizes_test.cpp measures the rule:
/// for chosen sizes, half of a chunk is left for K to K + 2 writes.

namespace fw::inline FASTWEIGHTS_ABI {

/// The contraction of the past signal at each write, from [0, 1] to [0, τ].
struct Contraction {
  double tau = 0;             ///< τ; 0 for even()
  Index horizon = max_count;  ///< in tokens; max_count: none
  /// One τ for every write. A `horizon` has no effect on a write. The sizes that a memory
  /// chooses keep that many tokens, or its constructor throws.
  static Contraction fixed(double tau, Index horizon = max_count) { return {tau, horizon}; }
  /// τ = n/(n + L) after n tokens, which is k/(k+1) for chunks of equal length, so that every token
  /// has the same share of [0, 1]. Each regression still smooths older tokens, less so with a
  /// smaller ridge. τ changes with every write, so every write needs its own operator. The first
  /// 128 operators are cached (128 N (N + L) numbers, shared by copies of the memory and by its
  /// streams); later writes compute theirs anew. In real time use a fixed τ or a horizon, and
  /// ContinuousMemory::prepare. After `horizon` tokens τ keeps its value, and older tokens fade.
  static Contraction even(Index horizon = max_count) { return {0, horizon}; }
};

namespace detail {

// Facts of a basis for the rule above.
struct BasisSizes {
  double functions;  // N
  double slots;      // independent ones
  double total;      // G
};

template <class Basis> BasisSizes basis_sizes(const Basis& basis) {
  constexpr int points = 16;
  Eigen::VectorXd psi(basis.size());
  double total = 0;
  for (int i = 0; i < points; ++i) {
    basis.evaluate((i + 0.5) / points, psi);
    total += psi.sum() / points;
  }
  const auto functions = static_cast<double>(basis.size());
  return {functions, std::min(functions, 1 / basis.narrowest()), total};
}

// τ of a write of `chunk` tokens, of an even contraction after its horizon, and 1 without one.
inline double contraction_of(const Contraction& c, double chunk) {
  if (c.tau > 0) return c.tau;
  const auto horizon = static_cast<double>(c.horizon);
  return c.horizon == max_count ? 1 : horizon / (horizon + chunk);
}

// Slots that the oldest chunk needs.
inline double slots_of_oldest(double tau) { return std::max(1.0, 0.65 / std::sqrt(1 - tau * tau)); }

// K, the writes for which this many slots keep chunks apart.
inline double writes_apart(double tau, double slots) {
  if (tau == 1) return std::min(slots / 2, std::cbrt(4 * slots * slots));
  const double first = slots * (1 - tau) / slots_of_oldest(tau);
  return first < 1 ? 0 : 1 + std::log(first) / -std::log(tau);
}

// The slots that keep chunks apart for K writes: the inverse of writes_apart for τ < 1.
inline double slots_for_writes(double tau, double writes) {
  return slots_of_oldest(tau) * std::pow(tau, 1 - writes) / (1 - tau);
}

// K of the horizon, or of the slots without one.
inline double writes_to_keep(const Contraction& c, double chunk, double slots) {
  if (c.horizon == max_count) return std::max(1.0, writes_apart(contraction_of(c, chunk), slots));
  return std::ceil(static_cast<double>(c.horizon) / chunk);
}

inline Index chosen_samples(Index functions) { return 4 * functions; }

// λ that takes a tenth from the oldest chunk; at most the published 1.
inline double chosen_ridge(const Contraction& c, double chunk, double samples,
                           const BasisSizes& b) {
  const double tau = contraction_of(c, chunk), writes = writes_to_keep(c, chunk, b.slots);
  return std::min(1.0, 0.1 * samples * b.total * b.total / (tau * b.functions * writes));
}

// The writes of `chunk` tokens after which half of a chunk is left.
inline double kept_writes(const Contraction& c, double chunk, double samples, double ridge,
                          const BasisSizes& b) {
  const double tau = contraction_of(c, chunk), weight = ridge * b.functions / (b.total * b.total);
  const double new_tokens = tau < 1 ? chunk / (1 - tau) : chunk * b.slots;
  const double first = std::min(1.0, new_tokens / b.slots) * new_tokens / (new_tokens + weight);
  const double later = std::min(1.0, samples / (tau * b.slots)) / (1 + weight * tau / samples);
  if (first < 0.5) return 0;
  const double apart = writes_apart(tau, b.slots);
  return later < 1 ? std::min(apart, 1 + std::log(2 * first) / -std::log(later)) : apart;
}

}  // namespace detail

/// N, the fewest slots (RectangularBasis) that keep the contraction's horizon in chunks of `chunk`
/// tokens. max_count where no number of slots keeps it, or without a horizon.
inline Index functions_for(const Contraction& c, Index chunk) {
  if (c.horizon == max_count || chunk < 1) return max_count;
  const auto tokens = static_cast<double>(chunk);
  const double tau = detail::contraction_of(c, tokens),
               writes = detail::writes_to_keep(c, tokens, 0);
  const double slots = std::ceil(detail::slots_for_writes(tau, writes) * (1 + 1e-12));
  const double filled = tokens / (1 - tau);
  return !(slots <= filled) ? max_count : std::max<Index>(1, static_cast<Index>(slots));
}

}  // namespace fw
