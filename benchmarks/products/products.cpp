// Matrix products of layers, in float on one thread: the library's, and the same expression in
// Eigen, as shares of the peak of multiply-adds. The sizes are those of forward passes (W x),
// of gradients of inputs (Wᵀ dy) and of gradients of weights (dy xᵀ).
//
//     build/release/benchmarks/products
//     build/release/benchmarks/products_blas    # Eigen calls a BLAS (EIGEN_USE_BLAS)

#include <cstdio>
#include <fastweights/math/products.hpp>

#include "machine.hpp"

namespace {

using Eigen::Index;
using Matrix = Eigen::MatrixXf;

template <class F> double share_of_peak(double flops, const F& f) {
  int times = 1;
  double seconds = 0;
  while ((seconds = machine::best_seconds([&] {
            for (int i = 0; i < times; ++i) f();
          })) < 2e-3)
    times *= 2;
  return flops * times / seconds / machine::fma_peak<float>();
}

template <class A, class B>
void print(const char* what, const A& a, const B& b, const char* shape) {
  Matrix c = Matrix::Zero(a.rows(), b.cols());
  const double flops = 2.0 * double(a.rows()) * double(a.cols()) * double(b.cols());
  const double ours =
      share_of_peak(flops, [&] { fw::detail::add_product(c, a, b, fw::detail::one_block); });
  const double eigen = share_of_peak(flops, [&] { c.noalias() += a * b; });
  std::printf("| %s | %s | %.2f | %.2f |\n", what, shape, ours, eigen);
  std::fflush(stdout);
}

// A layer of `out` x `in` weights and T tokens.
void print_layer(Index out, Index in, Index tokens) {
  const Matrix w = Matrix::Random(out, in), x = Matrix::Random(in, tokens),
               dy = Matrix::Random(out, tokens);
  char shape[64];
  std::snprintf(shape, sizeof shape, "%td x %td, %td tokens", out, in, tokens);
  print("W x", w, x, shape);
  if (tokens == 1) return;
  print("Wᵀ dy", w.transpose(), dy, shape);
  print("dy xᵀ", dy, x.transpose(), shape);
}

}  // namespace

int main() {
  Eigen::setNbThreads(1);
  std::printf(
      "| product | weights | ours, of the peak | Eigen, of the peak |\n|---|---|---:|---:|\n");
  for (const Index tokens : {1, 16, 128, 1024})
    for (const auto& [out, in] : {std::pair<Index, Index>{128, 128}, {512, 128}, {128, 512}})
      print_layer(out, in, tokens);
  print_layer(1024, 1024, 1024);
}
