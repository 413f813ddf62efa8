#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/selective_scan.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "kernels/compare.hpp"

TEST_CASE("row scan: sizes fixed at compile time", "[kernels]") {
  check(fw::TitansMemory<double, 5, 3>(), 70);
  check(fw::Longhorn<double, 8, 1>(), 70);
  check(fw::SelectiveScan<float, 16, 64>(), 70);
}
