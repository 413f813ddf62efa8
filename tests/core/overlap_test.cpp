// Which views share memory (core/overlap.hpp), against a comparison of every address.

#include <fastweights/algorithms/step.hpp>
#include <fastweights/core/overlap.hpp>
#include <set>

#include "support/catch.hpp"

namespace {

using Eigen::MatrixXd;
using fw::Index;
using fw::detail::overlap;
using fw::detail::Region;

struct View {
  std::intptr_t begin, length, columns, stride;
  Region region() const { return {{}, {}, begin, length, columns, stride}; }
  std::set<std::intptr_t> bytes() const {
    std::set<std::intptr_t> all;
    for (std::intptr_t j = 0; j < columns; ++j)
      for (std::intptr_t i = 0; i < length; ++i) all.insert(begin + j * stride + i);
    return all;
  }
};

bool share_a_byte(const View& a, const View& b) {
  const auto x = a.bytes(), y = b.bytes();
  return std::any_of(x.begin(), x.end(), [&](std::intptr_t byte) { return y.count(byte) > 0; });
}

std::vector<View> views() {
  std::vector<View> all;
  for (const std::intptr_t begin : {0, 1, 3, 7, 10})
    for (const std::intptr_t length : {0, 1, 2, 5})
      for (const std::intptr_t columns : {0, 1, 2, 4})
        for (const std::intptr_t stride : {-5, -2, 0, 2, 5, 6, 9})
          all.push_back({begin, length, columns, stride});
  return all;
}

TEST_CASE("two views overlap if and only if they have an address in common", "[overlap]") {
  const auto all = views();
  int wrong = 0, shared = 0;
  for (const View& a : all)
    for (const View& b : all) {
      const bool expected = share_a_byte(a, b);
      shared += expected;
      wrong += overlap(a.region(), b.region()) != expected;
    }
  CHECK(wrong == 0);
  CHECK(shared > 1000);
}

TEST_CASE("stacked heads and alternating columns of one matrix have no entry in common",
          "[overlap]") {
  MatrixXd stacked(12, 10);
  const auto region = [](auto&& block) {
    return fw::detail::region_of({}, fw::SequenceView<const double, fw::Dynamic>(block));
  };
  CHECK_FALSE(overlap(region(stacked.middleRows(0, 4)), region(stacked.middleRows(4, 4))));
  CHECK(overlap(region(stacked.middleRows(0, 4)), region(stacked.middleRows(3, 4))));
  CHECK_FALSE(overlap(region(stacked.leftCols(5)), region(stacked.rightCols(5))));
  CHECK(overlap(region(stacked.leftCols(6)), region(stacked.rightCols(5))));
  using Every = Eigen::Map<MatrixXd, 0, Eigen::OuterStride<>>;
  Every even(stacked.data(), 12, 5, Eigen::OuterStride<>(24));
  Every odd(stacked.data() + 12, 12, 5, Eigen::OuterStride<>(24));
  Every third(stacked.data(), 12, 3, Eigen::OuterStride<>(36));
  CHECK_FALSE(overlap(region(even), region(odd)));
  CHECK(overlap(region(third), region(odd)));
}

}  // namespace
