#include "kernels/corrections.hpp"

namespace {

TEST_CASE("corrections: square memories", "[kernels]") {
  for (const Index d : {1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 63, 64, 65, 100, 128})
    check_corrections<double>(d, d, 7);
}

TEST_CASE("corrections: d_v differs from d_k", "[kernels]") {
  for (const Index dv : {1, 17, 65})
    for (const Index dk : {1, 3, 40}) check_corrections<double>(dk, dv, 5);
}

TEST_CASE("corrections: sequences of every length", "[kernels]") {
  for (const Index steps : {1, 2, 3, 15, 16, 17, 63, 64, 65, 130})
    check_corrections<double>(19, 18, steps);
}

}  // namespace
