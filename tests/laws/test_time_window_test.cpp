#include <Eigen/SVD>
#include <fastweights/memories/rules/atlas_memory.hpp>
#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/omega_memory.hpp>

#include "support/laws.hpp"

namespace {

using Eigen::MatrixXd;
using fw::Index;

struct Shape {
  Index dk, dv, window;
};

template <class M> void obeys(std::initializer_list<Shape> shapes) {
  for (const auto& [dk, dv, window] : shapes) {
    INFO("d_v = " << dv << ", d_k = " << dk << ", window " << window);
    laws::every_memory(M({dk, dv}, window));
  }
  for (const auto& [dk, dv, window] : {Shape{5, 4, 3}, {2, 3, 1}, {3, 3, 2}, {1, 3, 2}, {1, 1, 4}})
    laws::gradients_are_exact(M({dk, dv}, window), 9, false);
  laws::gradients_are_exact(M({4, 5}, 4), 1, false);
}

TEST_CASE("the Omega rule obeys the laws", "[laws][omega]") {
  obeys<fw::OmegaMemory<double>>({{1, 1, 1}, {3, 17, 4}, {65, 4, 2}, {64, 64, 4}});
  laws::float_follows_double(fw::OmegaMemory<double>({17, 5}, 2), false);
  laws::takes_autodiff(fw::OmegaMemory<double>({4, 3}, 2), false);
  laws::fixed_is_dynamic(fw::OmegaMemory<double, 4, 3, 2>(), fw::OmegaMemory<double>({4, 3}, 2),
                         false);
}
TEST_CASE("Atlas obeys the laws", "[laws][atlas]") {
  obeys<fw::AtlasMemory<double>>({{1, 1, 1}, {3, 17, 4}, {65, 4, 2}, {64, 64, 4}});
  laws::takes_autodiff(fw::AtlasMemory<double>({4, 3}, 2), false);
  laws::fixed_is_dynamic(fw::AtlasMemory<double, 4, 3, 2>(), fw::AtlasMemory<double>({4, 3}, 2),
                         false);
}
TEST_CASE("Atlas learns from errors of any size in float", "[laws][atlas]") {
  const fw::AtlasMemory<float> memory({3, 3}, 1);
  Eigen::MatrixXf W[3];
  for (int i = 0; i < 3; ++i) {
    auto state = fw::initial_state(memory);
    const Eigen::Vector3f x =
        Eigen::Vector3f(1, 0, -1) * std::array{1.0f, 1e10f, 1e-20f}[std::size_t(i)];
    const Eigen::VectorXf weights = Eigen::VectorXf::Ones(1);
    fw::write(memory, state, {x, x, 1.0f, 1.0f, 1.0f, weights});
    W[i] = state.W;
  }
  CHECK(W[0].norm() > 0.5f);
  CHECK((W[1] - W[0]).norm() < 1e-5f * W[0].norm());
  CHECK(W[2].allFinite());  // from denormal errors
}
TEST_CASE("Atlas in float follows double", "[laws][atlas]") {
  laws::float_follows_double(fw::AtlasMemory<double>({17, 5}, 2), false);
}

TEST_CASE("an Omega rule with a window of one token is Comba that looks up the key", "[omega]") {
  const fw::OmegaMemory<double> omega({4, 5}, 1);
  fw::Random random(3);
  auto all = fw::testing::random_sequences(omega, 20, random);
  auto state = fw::initial_state(omega);
  laws::scan(omega, state, all);
  const auto& in = all.inputs;
  const Eigen::RowVectorXd beta = in.beta.cwiseProduct(in.weights);
  CHECK(laws::output_difference(all, fw::Comba<double>({4, 5}),
                                {in.key, in.value, in.key, beta, in.decay}) <= 1e-14);
}

TEST_CASE("tokens with weight 0 and tokens before the first count nothing", "[omega]") {
  const fw::OmegaMemory<double> one({4, 5}, 1), three({4, 5}, 3);
  fw::Random random(4);
  auto all = fw::testing::random_sequences(one, 20, random);
  auto state = fw::initial_state(one);
  laws::scan(one, state, all);
  const auto& in = all.inputs;
  MatrixXd weights = MatrixXd::Zero(3, 20);
  weights.row(0) = in.weights;
  weights(1, 0) = weights(2, 0) = weights(2, 1) = 5;
  CHECK(laws::output_difference(all, three, {in.key, in.value, in.beta, in.decay, weights}) <=
        1e-14);
}

TEST_CASE("Newton-Schulz steps make a matrix and its transpose nearly orthogonal", "[atlas]") {
  const MatrixXd tall = MatrixXd::Random(7, 4);
  MatrixXd a = MatrixXd::Zero(7, 4), b = MatrixXd::Zero(4, 7);
  fw::detail::NewtonSchulz::add(tall, 1.0, a);
  fw::detail::NewtonSchulz::add(MatrixXd(tall.transpose()), 2.0, b);
  CHECK(largest_entry(2 * a - b.transpose()) <= 1e-14);
  const Eigen::VectorXd singular = a.jacobiSvd().singularValues();
  CHECK(singular.minCoeff() > 0.65);
  CHECK(singular.maxCoeff() < 1.25);
  MatrixXd zero = MatrixXd::Zero(4, 7), c = zero;
  fw::detail::NewtonSchulz::add(zero, 1.0, c);
  CHECK(c.isZero(0));
}

}  // namespace
