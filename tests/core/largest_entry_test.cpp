#include "support/largest_entry.hpp"

#include <limits>

#include "support/catch.hpp"

// All comparisons with poisoned outputs rely on this.
TEMPLATE_TEST_CASE("largest_entry: returns NaN for a NaN in any entry", "[checks]", float, double) {
  for (const Eigen::Index size : {1, 3, 17, 63, 65, 100})
    for (Eigen::Index at = 0; at < size; ++at) {
      Eigen::Matrix<TestType, Eigen::Dynamic, Eigen::Dynamic> m(size, 2);
      m.setOnes();
      m(0, 0) = -2;
      CHECK(largest_entry(m) == 2);
      m(at, 1) = std::numeric_limits<TestType>::quiet_NaN();
      CHECK_FALSE(largest_entry(m) <= 3);
      CHECK_FALSE(largest_entry(m.array() + 1) <= 3);
    }
}

TEST_CASE("keep_worst: NaN stays NaN", "[checks]") {
  double worst = 0;
  keep_worst(worst, 2);
  keep_worst(worst, 1);
  CHECK(worst == 2);
  keep_worst(worst, NAN);
  keep_worst(worst, 3);
  CHECK_FALSE(worst <= 4);
}
