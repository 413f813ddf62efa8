#include "machine.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <fastweights/math/parallel_for.hpp>

#include "compare.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace machine {

namespace {

// Enough independent sums to hide the latency of a multiply-add. Together with the two factors they
// fit into the 16 registers of AVX2.
constexpr std::size_t sums = 12;
constexpr int rounds = 200000;

// Volatile, so that the compiler cannot reuse the results of an earlier call.
volatile float half = 0.5f, one = 1.0f;

template <class S> EIGEN_DONT_INLINE S multiply_add() {
  const S factor = static_cast<S>(half), summand = static_cast<S>(one);
  namespace simd = Eigen::internal;
  using Packet = typename simd::packet_traits<S>::type;
  const auto a = simd::pset1<Packet>(factor), b = simd::pset1<Packet>(summand);
  Packet x[sums];
  for (std::size_t i = 0; i < sums; ++i)  // all different; the compiler would merge equal ones
    x[i] = simd::pset1<Packet>(summand + static_cast<S>(i));
  for (int round = 0; round < rounds; ++round)
    for (Packet& each : x) each = simd::pmadd(a, each, b);
  Packet total = b;
  for (const Packet& each : x) total = simd::padd(total, each);
  return simd::predux(total);
}

}  // namespace

template <class S> double fma_peak() {
  constexpr int lanes = Eigen::internal::packet_traits<S>::size;
  volatile S sink = S(0);
  const double seconds = best_seconds([&] { sink = multiply_add<S>(); });
  return 2.0 * lanes * static_cast<double>(sums) * rounds / seconds;
}
template double fma_peak<float>();
template double fma_peak<double>();

void use_threads([[maybe_unused]] int count) {
#ifdef _OPENMP
  omp_set_num_threads(count);
#endif
}

int cores() {
#ifdef _OPENMP
  return omp_get_num_procs();
#else
  return 1;
#endif
}

double fma_peak_scaling(int threads) {
  const auto run = [](Eigen::Index shares, bool parallel) {
    fw::parallel_for(shares, parallel, [](Eigen::Index) {
      for (int i = 0; i < 20; ++i)  // so that starting threads does not matter
        [[maybe_unused]] volatile float sink = multiply_add<float>();
    });
  };
  use_threads(threads);
  return threads / time_ratio(
                       wall_clock, [&] { run(1, false); }, [&] { run(threads, true); });
}

double in_place_bandwidth(std::size_t bytes) {
  Eigen::ArrayXf data = Eigen::ArrayXf::Ones(static_cast<Eigen::Index>(bytes / sizeof(float)));
  const std::size_t times = std::max<std::size_t>(1, (std::size_t(1) << 26) / bytes);
  const double seconds = best_seconds([&] {
    for (std::size_t i = 0; i < times; ++i) data *= 0.999999f;
  });
  return 2.0 * static_cast<double>(bytes * times) / seconds;
}

}  // namespace machine
