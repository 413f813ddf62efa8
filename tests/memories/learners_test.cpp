#include <cmath>
#include <fastweights/core/finite.hpp>
#include <fastweights/math/newton_schulz.hpp>
#include <stdexcept>

#include "support/catch.hpp"
#include "support/reductions.hpp"

/// \file
/// Memories that learn a matrix at test time: Mesa, Kalma, Miras, Omega and Atlas.

namespace {

using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;
using fw::Index;
using fw::make_memory;
using laws::leaf;
using laws::output_difference;
using laws::random_outputs;
using Memory = fw::AnyMemory<double>;

// The answer to q is W G⁻¹ q, so that to G x is W x.
TEST_CASE("the Mesa memory answers with a weighted ridge regression of values on keys", "[mesa]") {
  const auto m = make_memory<double>("MesaMemory", {4, 3});
  fw::Random random(7);
  auto all = fw::testing::random_sequences(m, 20, random);
  auto state = m.initial_state();
  fw::testing::scan(m, state, all);
  VectorXd weights(20);
  for (Index t = 19; t >= 0; --t) {
    weights[t] = all.inputs["beta"](t);
    for (Index later = t + 1; later < 20; ++later) weights[t] *= all.inputs["decay"](later);
  }
  const MatrixXd &K = all.inputs["key"], &V = all.inputs["value"];
  const MatrixXd G = K * weights.asDiagonal() * K.transpose() + MatrixXd::Identity(4, 4),
                 W = V * weights.asDiagonal() * K.transpose();
  const VectorXd x = VectorXd::LinSpaced(4, -1, 2), query = G * x;
  VectorXd y(3);
  m.read(state, {query}, {y});
  CHECK(largest_entry(y - W * x) <= 1e-14);
}

// The outputs of 20 random tokens, from zero.
MatrixXd outputs(std::string_view name, const fw::MemoryOptions& options) {
  return random_outputs(make_memory<double>(name, options), 20, 7).outputs["output"];
}

TEST_CASE("conjugate gradients of as many steps as keys have rows are exact", "[mesa]") {
  const auto exact = outputs("MesaMemory", {6, 3});
  const auto iterative =
      outputs("IterativeMesaMemory", {6, 3, {{"iterations", 6}, {"epsilon", 0}}});
  CHECK(largest_entry(exact - iterative) <= 1e-12);
}

TEST_CASE("conjugate gradients stay finite when they have converged", "[mesa]") {
  const auto exact = outputs("MesaMemory", {3, 2});
  const auto converged = outputs("IterativeMesaMemory", {3, 2, {{"iterations", 100}}});
  CHECK(largest_entry(exact - converged) <= 1e-4);
}

TEST_CASE("the Kalma memory answers with a ridge regression if it takes many steps", "[kalma]") {
  const auto m = make_memory<double>("KalmaMemory", {6, 3, {{"iterations", 200}}});
  fw::Random random(7);
  auto all = fw::testing::random_sequences(m, 20, random);
  auto state = m.initial_state();
  fw::testing::scan(m, state, all);
  const MatrixXd G = leaf(state, "G");
  const VectorXd x = VectorXd::LinSpaced(6, -1, 2), query = G * x + 0.02 * G.norm() * x;
  VectorXd y(3);
  for (const double mix : {0.0, 0.25, 1.0}) {
    m.read(state, {query, mix}, {y});
    CHECK(largest_entry(y - leaf(state, "W") * ((1 - mix) * query + mix * x)) <= 1e-12);
  }
}

TEST_CASE("the Kalma memory without a solution is gated linear attention", "[kalma]") {
  const auto all = random_outputs(make_memory<double>("SimpleGatedLinearAttention", {4, 5}), 20, 7);
  const auto& in = all.inputs;
  const MatrixXd y = laws::outputs_of(make_memory<double>("KalmaMemory", {4, 5}),
                                      {in["key"], in["value"], in["decay"]},
                                      {all.queries["query"], MatrixXd::Zero(1, 20)});
  CHECK(largest_entry(y - all.outputs["output"]) <= 1e-14);
}

TEST_CASE("the Kalma memory of zero keys has no solution, and finite gradients", "[kalma]") {
  for (const Index dk : {1, 3, 70}) {
    const auto m = make_memory<double>("KalmaMemory", {dk, 2});
    fw::Random random(5);
    auto all = fw::testing::random_sequences(m, 20, random);
    all.inputs["key"].leftCols(18).setZero();
    auto state = m.initial_state(), gradient = m.zero_gradient();
    leaf(state, "W").setOnes();
    fw::AnyCheckpoints<double> checkpoints;
    m.scan(state, all.inputs.views(), all.queries.views(), all.outputs.views<double>(),
           checkpoints);
    const double rest = 1 - all.queries["mix"](0);
    const VectorXd first =
        VectorXd::Constant(2, rest * all.inputs["decay"](0) * all.queries["query"].col(0).sum());
    CHECK(largest_entry(all.outputs["output"].col(0) - first) <= 1e-14);
    auto d = all;
    m.backward(checkpoints, all.inputs.views(), all.queries.views(), all.outputs.views(), gradient,
               d.inputs.views<double>(), d.queries.views<double>());
    CHECK(fw::all_finite(all.outputs["output"]));
    for (const auto* record : {&d.inputs, &d.queries})
      for (const MatrixXd& each : record->matrices) CHECK(fw::all_finite(each));
    CHECK(fw::all_finite(MatrixXd(leaf(gradient, "G"))));
  }
}

// With keys c k the solution is that of k, divided by c². At 2⁻⁴⁰ the squares of G underflow. The
// condition of G + λI is up to 51, and rounding of 6e-8 grows with it over 30 steps: 1.0e-5 without
// contraction of multiply-adds, below that with it. What underflows is wrong by 1.
TEST_CASE("the Kalma memory takes keys of any size", "[kalma]") {
  const auto m = make_memory<float>("KalmaMemory", {100, 3});
  fw::Random random(3);
  auto all = fw::testing::random_sequences(m, 40, random);
  all.queries["mix"].setOnes();
  auto state = m.initial_state();
  fw::testing::scan(m, state, all);
  const Eigen::MatrixXf plain = all.outputs["output"], keys = all.inputs["key"];
  for (const float scale : {0x1p-20f, 0x1p-40f, 0x1p20f, 0x1p40f}) {
    all.inputs["key"] = scale * keys;
    state = m.initial_state();
    fw::testing::scan(m, state, all);
    CHECK(largest_entry(scale * all.outputs["output"] - plain) <= 3e-5f * largest_entry(plain));
  }
}

TEST_CASE("the Kalma memory refuses a ridge that is not positive, and a negative number of steps",
          "[kalma]") {
  const auto made_with = [](const char* option, double value) {
    make_memory<double>("KalmaMemory", {3, 2, {{option, value}}});
  };
  for (const double ridge : {0.0, -1.0, std::nan(""), HUGE_VAL})
    CHECK_THROWS_AS(made_with("ridge", ridge), std::invalid_argument);
  for (const double iterations : {-1.0, 1001.0})
    CHECK_THROWS_AS(made_with("iterations", iterations), std::invalid_argument);
  CHECK_NOTHROW(made_with("iterations", 0));
}

TEST_CASE("a Huber loss without outliers gives Comba that looks up the key", "[miras]") {
  const auto all = random_outputs(make_memory<double>("MirasMemory", {4, 5}), 20, 3);
  const auto& in = all.inputs;
  const MatrixXd &key = in["key"], &value = in["value"], &beta = in["beta"], &decay = in["decay"];
  CHECK(output_difference(all, make_memory<double>("Comba", {4, 5}),
                          {key, value, key, beta, decay}) <= 1e-14);
  const RowVectorXd threshold = RowVectorXd::Constant(20, 100);
  CHECK(output_difference(all, make_memory<double>("Yaad", {4, 5}),
                          {key, value, beta, decay, threshold}) <= 1e-14);
}

TEST_CASE("an outlier is written with the length of the threshold", "[miras]") {
  const auto yaad = make_memory<double>("Yaad", {1, 2});
  auto state = yaad.initial_state();
  const VectorXd key = VectorXd::Ones(1), value = Eigen::Vector2d(300, 400);
  yaad.write(state, {key, value, 0.5, 1.0, 2.0});
  CHECK(largest_entry(leaf(state, "A") - Eigen::Vector2d(0.6, 0.8)) <= 1e-15);
  yaad.write(state, {key, value, 0.5, 1.0, 0.0});
  CHECK(largest_entry(leaf(state, "A") - Eigen::Vector2d(0.6, 0.8)) <= 1e-15);
}

// W, column by column.
MatrixXd weights(const Memory& m, const fw::AnyState<double>& state) {
  MatrixXd W(m.given()[0].rows, m.read_with()[0].rows);
  for (Index j = 0; j < W.cols(); ++j) {
    const VectorXd unit = VectorXd::Unit(W.cols(), j);
    m.read(state, {unit}, {W.col(j)});
  }
  return W;
}

TEST_CASE("Memora is a softmax of decayed log-weights", "[miras]") {
  const auto memora = make_memory<double>("Memora", {4, 5});
  fw::Random random(4);
  auto one = fw::testing::random_sequences(memora, 1, random);
  auto before = fw::testing::random_sequences(memora, 7, random);
  auto state = memora.initial_state();
  fw::testing::scan(memora, state, before);
  const MatrixXd W = weights(memora, state);
  const MatrixXd &key = one.inputs["key"], &value = one.inputs["value"];
  MatrixXd expected = one.inputs["decay"](0) * W.array().log().matrix() -
                      one.inputs["beta"](0) * (W * key - value) * key.transpose();
  expected = expected.array().exp();
  const VectorXd sums = expected.rowwise().sum();
  expected.array().colwise() /= sums.array();
  memora.write(state, one.inputs.views());
  CHECK(largest_entry(weights(memora, state) - expected) <= 1e-15);
}

TEST_CASE("Moneta reads A divided by the square of its 4-norm", "[miras]") {
  const auto moneta = make_memory<double>("Moneta", {3, 2});
  auto state = moneta.initial_state();
  CHECK(weights(moneta, state).isZero(0));
  for (const double size : {1e-150, 1.0, 1e150}) {
    auto A = leaf(state, "A");
    A << 1, -2, 3, 4, 0, -1;
    const MatrixXd expected = A / std::sqrt(1 + 16 + 81 + 256 + 1) / size;
    A *= size;
    CHECK(largest_entry(weights(moneta, state) - expected) <= 1e-15 / size);
  }
}

TEST_CASE("Memora and Moneta and their gradients are finite for large states", "[miras]") {
  for (const char* const name : {"Memora", "Moneta"}) {
    INFO(name);
    const auto m = make_memory<double>(name, {4, 5});
    auto all = random_outputs(m, 20, 5), d = all;
    for (auto* record : {&d.inputs, &d.queries})
      for (auto& matrix : record->matrices) matrix.setZero();
    d.outputs["output"].setOnes();
    auto state = m.initial_state(), ds = m.zero_gradient();
    auto A = leaf(state, "A");
    for (Index i = 0; i < A.size(); ++i) A(i) = static_cast<double>(i % 3 - 1) * 1e300;
    fw::AnyCheckpoints<double> checkpoints;
    m.scan(state, all.inputs.views(), all.queries.views(), all.outputs.views<double>(),
           checkpoints);
    m.backward(checkpoints, all.inputs.views(), all.queries.views(), d.outputs.views(), ds,
               d.inputs.views<double>(), d.queries.views<double>());
    CHECK(all.outputs["output"].allFinite());
    CHECK(leaf(ds, "A").allFinite());
    for (auto* record : {&d.inputs, &d.queries})
      for (const auto& matrix : record->matrices) CHECK(matrix.allFinite());
  }
}

TEST_CASE("Yaad refuses an unstable write", "[miras]") {
  const auto yaad = make_memory<double>("Yaad", {2, 1});
  auto state = yaad.initial_state();
  const Eigen::Vector2d key(1, 0);
  CHECK_THROWS_AS(yaad.checked_write(state, {key, 1.0, 1.5, 0.4, 1.0}), std::invalid_argument);
  CHECK(state == yaad.initial_state());
  CHECK_NOTHROW(yaad.checked_write(state, {key, 1.0, 1.5, 0.6, 1.0}));
}

TEST_CASE("an Omega rule with a window of one token is Comba that looks up the key", "[omega]") {
  const auto all =
      random_outputs(make_memory<double>("OmegaMemory", {4, 5, {{"window", 1}}}), 20, 3);
  const auto& in = all.inputs;
  const MatrixXd beta = in["beta"].cwiseProduct(in["weights"]);
  CHECK(output_difference(all, make_memory<double>("Comba", {4, 5}),
                          {in["key"], in["value"], in["key"], beta, in["decay"]}) <= 1e-14);
}

TEST_CASE("tokens with weight 0 and tokens before the first count nothing", "[omega]") {
  const auto all =
      random_outputs(make_memory<double>("OmegaMemory", {4, 5, {{"window", 1}}}), 20, 4);
  const auto& in = all.inputs;
  MatrixXd weights = MatrixXd::Zero(3, 20);
  weights.row(0) = in["weights"];
  weights(1, 0) = weights(2, 0) = weights(2, 1) = 5;
  CHECK(output_difference(all, make_memory<double>("OmegaMemory", {4, 5, {{"window", 3}}}),
                          {in["key"], in["value"], in["beta"], in["decay"], weights}) <= 1e-14);
}

TEST_CASE("Atlas learns from errors of any size in float", "[atlas]") {
  const auto memory = make_memory<float>("AtlasMemory", {3, 3, {{"window", 1}}});
  Eigen::MatrixXf W[3];
  for (int i = 0; i < 3; ++i) {
    auto state = memory.initial_state();
    const Eigen::Vector3f x =
        Eigen::Vector3f(1, 0, -1) * std::array{1.0f, 1e10f, 1e-20f}[std::size_t(i)];
    memory.write(state, {x, x, 1.0f, 1.0f, 1.0f, 1.0f});
    W[i] = leaf(state, "W");
  }
  CHECK(W[0].norm() > 0.5f);
  CHECK((W[1] - W[0]).norm() < 1e-5f * W[0].norm());
  CHECK(W[2].allFinite());  // from denormal errors
}

TEST_CASE("Newton-Schulz steps make a matrix and its transpose nearly orthogonal", "[atlas]") {
  const MatrixXd tall = MatrixXd::Random(7, 4);
  MatrixXd a = MatrixXd::Zero(7, 4), b = MatrixXd::Zero(4, 7);
  fw::detail::NewtonSchulz::add(tall, 1.0, a);
  fw::detail::NewtonSchulz::add(MatrixXd(tall.transpose()), 2.0, b);
  CHECK(largest_entry(2 * a - b.transpose()) <= 1e-14);
  for (int i = 0; i < 1000; ++i) {
    const double length = (a * VectorXd::Random(4).normalized()).norm();
    CHECK((length > 0.65 && length < 1.25));
  }
  MatrixXd zero = MatrixXd::Zero(4, 7), c = zero;
  fw::detail::NewtonSchulz::add(zero, 1.0, c);
  CHECK(c.isZero(0));
}

}  // namespace
