#include <fastweights/memories/adaptors/deferred.hpp>

#include "kernels/corrections.hpp"

// In float.
namespace {

TEST_CASE("corrections: float", "[kernels]") {
  for (const Index d : {3, 16, 65}) check_corrections<float>(d, d, 7);
}

// Nothing looks up W for v kᵀ, so that no product with W overflows.
TEST_CASE("corrections: a write that looks up nothing multiplies no infinity by 0", "[kernels]") {
  using M = fw::LowRankRule<float>;
  const auto check = [](const auto& m) {
    auto state = fw::initial_state(m);
    state.W.setConstant(3e38f);
    const Eigen::VectorXf zero = Eigen::VectorXf::Zero(2), ones = Eigen::VectorXf::Ones(2);
    const Eigen::VectorXf key = 2 * Eigen::VectorXf::Unit(2, 0), query = key / 4;
    Eigen::VectorXf y(2);
    fw::step(m, state, {key, zero, zero, zero, ones}, {query}, {y});
    CHECK(y == Eigen::VectorXf::Constant(2, 1.5e38f));
  };
  check(M({.key_size = 2}));
  check(fw::Deferred(M({.key_size = 2})));
}

}  // namespace
