// A step of a network multiplies every matrix with one token, which takes as long as reading them.
// Prints the rate at which QuantisedMatrix::multiply goes through matrices of 256 MiB, in turns
// with a loop that does nothing but read the same bytes.
//
//     OMP_NUM_THREADS=2 build/release/benchmarks/slow_weights

#include <cstdio>
#include <fastweights/networks/quantised_matrix.hpp>

#include "compare.hpp"
#include "machine.hpp"

namespace {

using Eigen::Index;
using fw::networks::QuantisedMatrix;
using fw::networks::WeightType;

constexpr Index matrix_bytes = Index(256) << 20;

// Adds up numbers in 8 packets, so that additions do not wait for each other.
float sum(const float* from, Index count) {
  namespace simd = Eigen::internal;
  using Packet = simd::packet_traits<float>::type;
  constexpr Index lanes = simd::packet_traits<float>::size;
  Packet sums[8];
  for (Packet& each : sums) each = simd::pset1<Packet>(0);
  for (Index i = 0; i + 8 * lanes <= count; i += 8 * lanes)
    for (Index j = 0; j < 8; ++j) {
      __builtin_prefetch(from + i + j * lanes + 1024);  // the processor does not look so far
      sums[j] = simd::padd(sums[j], simd::ploadu<Packet>(from + i + j * lanes));
    }
  Packet total = sums[0];
  for (Index j = 1; j < 8; ++j) total = simd::padd(total, sums[j]);
  return simd::predux(total);
}

void read(const Eigen::ArrayXf& all, Index threads) {
  const Index part = all.size() / threads;
  fw::parallel_for(threads, threads > 1, [&](Index i) {
    [[maybe_unused]] volatile float sink = sum(all.data() + i * part, part);
  });
}

void print(const char* name, WeightType type, Index entry_bytes, Index cols, Index columns) {
  const Index rows = matrix_bytes / entry_bytes / cols;
  const QuantisedMatrix<float> m(Eigen::MatrixXf::Random(rows, cols), type);
  const Eigen::ArrayXf same_bytes = Eigen::ArrayXf::Ones(m.bytes() / Index(sizeof(float)));
  const Eigen::MatrixXf x = Eigen::MatrixXf::Random(cols, columns);
  Eigen::MatrixXf y(rows, columns);
  const auto multiply = [&] { m.multiply(x, y); };
  const double ratio = machine::time_ratio(machine::wall_clock, multiply,
                                           [&] { read(same_bytes, Eigen::nbThreads()); });
  const double start = machine::wall_clock();
  for (int i = 0; i < 5; ++i) multiply();
  const double seconds = (machine::wall_clock() - start) / 5;
  std::printf("| %s | %td | %td | %.1f | %.2f |\n", name, cols, columns,
              double(m.bytes()) / seconds * 1e-9, ratio);
  std::fflush(stdout);
}

}  // namespace

int main() {
  std::printf("%d threads, matrices of 256 MiB\n\n", Eigen::nbThreads());
  std::printf("| entries | columns of the matrix | tokens | GB/s | of reading |\n");
  std::printf("|---|---:|---:|---:|---:|\n");
  for (const Index cols : {1024, 3584})
    for (const Index columns : {1, 4}) {
      print("float", WeightType::same, 4, cols, columns);
      print("bfloat16", WeightType::bfloat16, 2, cols, columns);
      print("int8", WeightType::int8, 1, cols, columns);
    }
}
