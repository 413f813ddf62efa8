#pragma once

#include <cmath>
#include <fastweights/memories/attention/continuous_memory.hpp>

/// Where on [0, 1] a continuous memory has a token now: one of the chunk that was written `age`
/// writes ago (1: the last) of `chunks` in all, at `within` of that chunk, from 0 to 1.
///
/// A write puts its tokens at τ + (1−τ) within (the first write at `within`, as there is no past
/// that needs room) and samples the old signal at t for the target at τ t. So every later write
/// moves what lay at t to τ t:
///
///     fixed τ:           t = τ^(age−1) (τ + (1−τ) within)
///     even, τ = k/(k+1):  t = (chunks − age + within)/chunks
///
/// The second since the factors after chunk j telescope: j/(j+1) · … · (chunks−1)/chunks. Token l
/// of L stands in the middle of its cell, within = (l + ½)/L.
inline double signal_place(const fw::Contraction& contraction, fw::Index chunks, fw::Index age,
                           double within) {
  const double tau = contraction.tau;
  const auto older = static_cast<double>(chunks - age);  // how many chunks were written before it
  if (tau == 0) return (older + within) / static_cast<double>(chunks);
  return std::pow(tau, static_cast<double>(age - 1)) *
         (older > 0 ? tau + (1 - tau) * within : within);
}
