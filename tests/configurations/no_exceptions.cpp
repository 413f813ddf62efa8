// The library without exceptions and run-time type information (-fno-exceptions -fno-rtti). Without
// an argument it uses memories, one of them continuous. With the argument "error" it passes a key
// of a wrong size, which must print the error and abort.
#include <fastweights/fastweights.hpp>

#include "without_exceptions.hpp"

namespace {

// The delta rule's scan against its equation.
void scan_equals_the_equation() {
  const fw::DeltaRule<double> memory({.key_size = 5, .value_size = 7});
  const Eigen::MatrixXd K = Eigen::MatrixXd::Random(5, 33), V = Eigen::MatrixXd::Random(7, 33);
  const Eigen::VectorXd beta = Eigen::VectorXd::Constant(33, 0.5);
  Eigen::MatrixXd Y(7, 33), W = Eigen::MatrixXd::Zero(7, 5), expected(7, 33);
  auto state = fw::initial_state(memory);
  fw::scan(memory, state, {K, V, beta}, {K}, {Y});
  for (fw::Index t = 0; t < 33; ++t) {
    W += beta[t] * (V.col(t) - W * K.col(t)) * K.col(t).transpose();
    expected.col(t) = W * K.col(t);
  }
  check((Y - expected).cwiseAbs().maxCoeff() < 1e-12, "the outputs of a scan");
  check((state.W - W).cwiseAbs().maxCoeff() < 1e-12, "the state after a scan");
}

void continuous_memory_recalls() {
  using Basis = fw::RectangularBasis<float>;
  using Density = fw::GibbsDensity<float>;
  const Basis basis(8);
  const fw::ContinuousMemory<float, Density, Basis> memory(
      {.d = 4,
       .samples = 16,
       .contraction = fw::Contraction::fixed(0.75),
       .regression = {.ridge = 1}},
      basis, Density(basis));
  auto state = fw::initial_state(memory);
  const Eigen::MatrixXf chunk = Eigen::MatrixXf::Ones(4, 16), queries = chunk.leftCols(3);
  Eigen::MatrixXf outputs = Eigen::MatrixXf::Zero(4, 3);
  fw::write(memory, state, {chunk});
  fw::read(memory, state, {queries}, {outputs});
  // The penalty of the regression keeps the answer a little below the signal.
  check((outputs.array() > 0.5f).all() && (outputs.array() < 1.01f).all(),
        "what a continuous memory reads");
}

}  // namespace

int main(int count, char**) {
  if (count > 1) {
    const fw::DeltaRule<float> memory({.key_size = 4, .value_size = 3});
    auto state = fw::initial_state(memory);
    const Eigen::VectorXf key = Eigen::VectorXf::Ones(3), value = key;
    fw::write(memory, state, {key, value, 1.0f});
    return 0;
  }
  scan_equals_the_equation();
  continuous_memory_recalls();
  return failures;
}
