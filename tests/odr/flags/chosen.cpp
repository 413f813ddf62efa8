// Chooses between sources of different instruction sets at run time. It does not include the
// library.
#include <cmath>
#include <cstdio>
#include <vector>

#include "recall.hpp"

namespace {

constexpr int dk = 17, dv = 19, tokens = 100;

// The equation, in double.
double expected(const std::vector<float>& keys, const std::vector<float>& values) {
  std::vector<double> W(dk * dv);
  double sum = 0;
  for (int t = 0; t < tokens; ++t) {
    const float *k = keys.data() + t * dk, *v = values.data() + t * dv;
    for (int i = 0; i < dv; ++i) {
      double read = 0, output = 0;
      for (int j = 0; j < dk; ++j) read += W[i * dk + j] * double(k[j]);
      for (int j = 0; j < dk; ++j) W[i * dk + j] += 0.5 * (double(v[i]) - read) * double(k[j]);
      for (int j = 0; j < dk; ++j) output += W[i * dk + j] * double(k[j]);
      sum += output;
    }
  }
  return sum;
}

}  // namespace

int main() {
  std::vector<float> keys(dk * tokens), values(dv * tokens);
  unsigned seed = 1;
  const auto next = [&] {
    return float((seed = seed * 1664525u + 1013904223u) >> 8) / 16777216.0f;
  };
  for (float& key : keys) key = (next() - 0.5f) / 2;
  for (float& value : values) value = next();
  const double correct = expected(keys, values);
  const double sse2 = double(recall_sse2(keys.data(), values.data(), tokens));
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const double other = avx2 ? double(recall_avx2(keys.data(), values.data(), tokens)) : correct;
  std::printf("correct: %.9g  SSE2: %.9g  AVX2: %.9g\n", correct, sse2, other);
  const auto right = [&](double x) { return std::abs(x - correct) < 1e-5 * std::abs(correct); };
  return right(sse2) && right(other) ? 0 : 1;
}
