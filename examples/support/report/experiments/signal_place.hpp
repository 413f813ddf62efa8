#pragma once

#include <cmath>
#include <fastweights/memories/attention/continuous_memory.hpp>

/// The current place of a token on [0, 1] in a continuous memory. The token is at `within`, from 0
/// to 1, of the chunk that was written `age` writes ago (1: the last) of `chunks` in all.
///
/// A write places its tokens at τ + (1−τ) within (the first write at `within`, as there is no past)
/// and samples the old signal at t for the target at τ t. So every later write moves a token from t
/// to τ t:
///
///     fixed τ:           t = τ^(age−1) (τ + (1−τ) within)
///     even, τ = k/(k+1):  t = (chunks − age + within)/chunks
///
/// In the second case the factors after chunk j telescope: j/(j+1) · … · (chunks−1)/chunks. Token l
/// of L is in the middle of its cell, within = (l + ½)/L.
inline double signal_place(const fw::Contraction& contraction, fw::Index chunks, fw::Index age,
                           double within) {
  const double tau = contraction.tau;
  const auto older = static_cast<double>(chunks - age);  // chunks written before it
  if (tau == 0) return (older + within) / static_cast<double>(chunks);
  return std::pow(tau, static_cast<double>(age - 1)) *
         (older > 0 ? tau + (1 - tau) * within : within);
}
