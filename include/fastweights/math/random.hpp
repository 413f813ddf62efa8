#pragma once

#include <cmath>
#include <cstdint>
#include <fastweights/core/errors.hpp>
#include <random>
#include <type_traits>

/// \file
/// A seeded generator whose numbers are the same everywhere. The C++ standard specifies
/// std::mt19937_64 exactly, but not std::normal_distribution and the other distributions, so this
/// file implements them.

namespace fw::inline FASTWEIGHTS_ABI {

/// Draws uniform, normal and integer numbers from a seed. The random bits are the same with every
/// compiler and standard library; normal numbers also depend on the last bit of the mathematical
/// library's log and cos. All draws are made in double, so that a float matrix has the rounded
/// entries of the double matrix. A copy continues with the same numbers as the original.
class Random {
 public:
  /// Equal seeds give equal numbers.
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// In [0, 1): a multiple of 2^−53.
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

  /// Standard normal: √(−2 ln(1−u)) cos(2πv). Box, Muller 1958, A Note on the Generation of Random
  /// Normal Deviates. The second number (the sine) is discarded, so that the engine is the only
  /// state.
  double normal() {
    constexpr double two_pi = 6.283185307179586476925;
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(two_pi * uniform());
  }

  /// In {0, …, n−1}, each equally likely. Throws std::invalid_argument for n = 0.
  std::uint64_t below(std::uint64_t n) {
    if (n == 0) detail::throw_invalid({"Random: below(0) has no number to draw from"});
    const std::uint64_t surplus = (0 - n) % n;  // 2^64 mod n, the bit patterns to reject
    for (;;) {
      const std::uint64_t bits = engine_();
      if (bits >= surplus) return bits % n;
    }
  }

  /// Normal entries of standard deviation `scale`, drawn column after column.
  template <class Matrix> void fill(Matrix&& matrix, double scale = 1) {
    using S = typename std::remove_cvref_t<Matrix>::Scalar;
    for (decltype(matrix.cols()) j = 0; j < matrix.cols(); ++j)
      for (decltype(matrix.rows()) i = 0; i < matrix.rows(); ++i)
        matrix(i, j) = static_cast<S>(scale * normal());
  }

 private:
  std::mt19937_64 engine_;
};

/// Fills matrices, one after the other and column by column, with numbers uniform in ±bound.
/// `random` has uniform() in [0, 1).
template <class Generator, class... Matrices>
void fill_uniform(Generator& random, double bound, Matrices&... matrices) {
  const auto fill = [&](auto& m) {
    using S = typename std::remove_cvref_t<decltype(m)>::Scalar;
    m = m.NullaryExpr(m.rows(), m.cols(),
                      [&] { return S(bound * (2 * static_cast<double>(random.uniform()) - 1)); });
  };
  (fill(matrices), ...);
}

/// Number i of stream `seed`, uniform in [0, 1), for draws that must be repeatable. Steele, Lea,
/// Flood 2014 (SplitMix64), doi 10.1145/2660193.2660195.
inline double uniform_at(std::uint64_t seed, std::uint64_t i) {
  const auto mix = [](std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  };
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;
  return static_cast<double>(mix(mix(seed + golden) + (i + 1) * golden) >> 11) * 0x1p-53;
}

}  // namespace fw
