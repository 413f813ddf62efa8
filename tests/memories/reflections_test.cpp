// The chunkwise form of the delta rules where errors do not fade, against steps in double.

#include <fastweights/algorithms/scan.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "support/catch.hpp"

namespace {

using Eigen::MatrixXd;
using Eigen::MatrixXf;
using Eigen::VectorXf;
using fw::Index;

constexpr Index d = 16, steps = 4000;

// One key that is written again and again with β‖k‖² = 2: every write reflects W k.
struct Reflections {
  MatrixXf keys = VectorXf::LinSpaced(d, -1, 2).normalized().replicate(1, steps);
  MatrixXf values = MatrixXf::Random(d, steps);
  VectorXf betas = VectorXf::Constant(steps, 2), decays = VectorXf::Ones(steps);
  MatrixXd exact = outputs();

  MatrixXd outputs() const {
    const fw::DeltaRule<double> m({.key_size = d});
    auto state = fw::initial_state(m);
    const MatrixXd k = keys.cast<double>(), v = values.cast<double>();
    MatrixXd y(d, steps);
    for (Index t = 0; t < steps; ++t)
      fw::step(m, state, {k.col(t), v.col(t), 2.0}, {k.col(t)}, {y.col(t)});
    return y;
  }
  double error(const MatrixXf& y) const {
    return (y.cast<double>() - exact).cwiseAbs().maxCoeff() / exact.cwiseAbs().maxCoeff();
  }
};

TEST_CASE("chunks of reflections in float are as exact as steps", "[memories]") {
  const Reflections r;
  const fw::DeltaRule<float> m({.key_size = d});
  const fw::DeltaRule<float, fw::Dynamic, fw::Dynamic, fw::NoNormaliser, fw::KeyValueVectorBeta>
      rows({.key_size = d});
  const fw::GatedDeltaRule<float> gated({.key_size = d});
  const MatrixXf row_betas = MatrixXf::Constant(d, steps, 2);
  MatrixXf y(d, steps);
  auto state = fw::initial_state(m);
  for (Index t = 0; t < steps; ++t)
    fw::step(m, state, {r.keys.col(t), r.values.col(t), 2.0f}, {r.keys.col(t)}, {y.col(t)});
  constexpr double bound = 3e-5;
  CHECK(r.error(y) < bound);
  for (const Index chunk : {8, 64, 1000}) {
    INFO("chunks of " << chunk);
    auto s = fw::initial_state(m);
    fw::chunked_scan(m, s, {r.keys, r.values, r.betas}, {r.keys}, {y}, chunk);
    CHECK(r.error(y) < bound);
    auto t = fw::initial_state(rows);
    fw::chunked_scan(rows, t, {r.keys, r.values, row_betas}, {r.keys}, {y}, chunk);
    CHECK(r.error(y) < bound);
    auto g = fw::initial_state(gated);
    fw::chunked_scan(gated, g, {r.keys, r.values, r.betas, r.decays}, {r.keys}, {y}, chunk);
    CHECK(r.error(y) < bound);
  }
}

}  // namespace
