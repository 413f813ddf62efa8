#include <fastweights/layers/attention/reconstruction_loss.hpp>
#include <fastweights/layers/attention/strided_conv.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>

#include "support/catch.hpp"

namespace {

using fw::Index;
using Memory = fw::CompressiveMemory<double>;
using Layer = fw::LongTermLayer<Memory, fw::StridedConv<double>>;
using Trace = fw::ReconstructionTrace<fw::StridedConv<double>>;

Layer random_layer(Index rate, std::uint64_t seed) {
  Layer layer({.heads = 2}, Memory({.d = 6, .heads = 2, .capacity = 5}),
              fw::StridedConv<double>(6, rate));
  fw::Random random(seed);
  fw::for_each_parameter([&](const std::string&, auto& p) { random.fill(p, 0.5); }, layer);
  return layer;
}

Eigen::MatrixXd random_matrix(Index rows, Index cols, std::uint64_t seed) {
  Eigen::MatrixXd m(rows, cols);
  fw::Random(seed).fill(m);
  return m;
}

// Softmax attention of one head, by its definition.
Eigen::MatrixXd attention(const Eigen::MatrixXd& keys, const Eigen::MatrixXd& values,
                          const Eigen::MatrixXd& queries) {
  Eigen::MatrixXd p = (keys.transpose() * queries / std::sqrt(double(keys.rows()))).array().exp();
  p.array().rowwise() /= p.colwise().sum().array().eval();
  return values * p;
}

TEST_CASE("reconstruction loss is the mean squared error of attention", "[compressive]") {
  const Index rate = 3;
  const Layer layer = random_layer(rate, 1);
  const Eigen::MatrixXd x = random_matrix(6, 12, 2), q = random_matrix(6, 4, 3);
  Eigen::MatrixXd compressed(6, 4);
  fw::StridedConv<double>::Trace conv;
  layer.gate.forward(x, compressed, conv);
  double expected = 0;
  for (Index h = 0; h < 6; h += 3) {
    const Eigen::MatrixXd wk = layer.key.weight.middleRows(h, 3),
                          wv = layer.value.weight.middleRows(h, 3), qh = q.middleRows(h, 3);
    expected += (attention(wk * x, wv * x, qh) - attention(wk * compressed, wv * compressed, qh))
                    .squaredNorm();
  }
  Layer grad = fw::zero_gradient(layer);
  Trace trace;
  const double loss = fw::attention_reconstruction(layer, x, q, 0.7, trace, grad);
  CHECK(std::abs(loss - 0.7 * expected / 24) <= 1e-14);
}

TEST_CASE("reconstruction loss trains the compressor and nothing else", "[compressive]") {
  for (const Index length : {1, 7, 12}) {
    Layer layer = random_layer(3, 4);
    const Eigen::MatrixXd x = random_matrix(6, length, 5), q = random_matrix(6, 20, 6);
    Trace trace;
    Layer grad = fw::zero_gradient(layer), unused = grad;
    fw::attention_reconstruction(layer, x, q, 1.0, trace, grad);
    const auto loss = [&] { return fw::attention_reconstruction(layer, x, q, 1.0, trace, unused); };
    const double h = 1e-6;
    const auto check = [&](auto& parameter, const auto& gradient) {
      for (Index i = 0; i < parameter.size(); ++i) {
        const double original = parameter.data()[i];
        parameter.data()[i] = original + h;
        const double above = loss();
        parameter.data()[i] = original - h;
        const double below = loss();
        parameter.data()[i] = original;
        CHECK(std::abs((above - below) / (2 * h) - gradient.data()[i]) <= 1e-8);
      }
    };
    check(layer.gate.weight, grad.gate.weight);
    check(layer.gate.bias, grad.gate.bias);
    CHECK(grad.key.weight.isZero(0));
    CHECK(grad.value.weight.isZero(0));
    CHECK(grad.output.weight.isZero(0));
  }
}

TEST_CASE("a compressor that copies its input has no reconstruction loss", "[compressive]") {
  Layer layer = random_layer(1, 7);
  layer.gate.weight.setIdentity();
  layer.gate.bias.setZero();
  const Eigen::MatrixXd x = random_matrix(6, 9, 8), q = random_matrix(6, 5, 9);
  Layer grad = fw::zero_gradient(layer);
  Trace trace;
  CHECK(fw::attention_reconstruction(layer, x, q, 1.0, trace, grad) == 0);
}

TEST_CASE("reconstruction loss refuses other sizes", "[compressive]") {
  const Layer layer = random_layer(3, 1);
  Layer grad = fw::zero_gradient(layer);
  Trace trace;
  const Eigen::MatrixXd x = random_matrix(6, 4, 1), wrong = random_matrix(5, 4, 1), none(6, 0);
  CHECK_THROWS_AS(fw::attention_reconstruction(layer, wrong, x, 1.0, trace, grad),
                  std::invalid_argument);
  CHECK_THROWS_AS(fw::attention_reconstruction(layer, x, wrong, 1.0, trace, grad),
                  std::invalid_argument);
  CHECK_THROWS_AS(fw::attention_reconstruction(layer, none, x, 1.0, trace, grad),
                  std::invalid_argument);
  Layer narrow = random_layer(2, 1);
  CHECK_THROWS_WITH(fw::attention_reconstruction(layer, x, x, 1.0, trace, narrow),
                    Catch::Matchers::ContainsSubstring(
                        "attention_reconstruction: the parameters of grad differ"));
}

}  // namespace
