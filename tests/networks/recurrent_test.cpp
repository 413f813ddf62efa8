#include <fastweights/io/safetensors.hpp>
#include <fastweights/layers/recurrent/lstm.hpp>
#include <fastweights/layers/recurrent/rnn.hpp>

#include "data_folder.hpp"
#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("recurrent nets: gradients and streaming", "[networks]") {
  for (const Index n : {1, 5, 17})
    for (const bool bias : {false, true}) {
      INFO(n << " units, bias " << bias);
      check_operation([&](const auto& x) { return rnn(x, "net", n, bias); });
      check_operation([&](const auto& x) { return rnn<Relu>(x, "net", n, bias); });
      check_operation([&](const auto& x) { return lstm(x, "net", n, bias); });
      check_operation([&](const auto& x) { return gru(x, "net", n, bias); });
    }
}

// Two layers, two sequences, from the state 0: outputs and all gradients of `train`.
struct Run {
  Matrix<double> y, dx;
  Net grad;
};
Run train(const Net& network, Index sequences, const Matrix<double>& x, const Matrix<double>& dy) {
  State state = network.initial_state(sequences);
  Net::Trace trace;
  Run result{run(network, state, x, trace, fw::Pass::train), x, fw::zero_gradient(network)};
  network.backward(x, trace, dy, result.dx, result.grad);
  return result;
}

// A tensor of sequences × tokens × rows.
Matrix<double> tokens_of(const fw::io::SafeTensors& file, const std::string& name) {
  const std::vector<double> values = file.values<double>(name);
  const Index rows = Index(file.shape(name)[2]);
  return Eigen::Map<const Matrix<double>>(values.data(), rows, Index(values.size()) / rows);
}

template <class F> void check_pytorch(const std::string& name, const F& layer) {
  INFO(name);
  const auto file = fw::io::SafeTensors::read(std::filesystem::path(FASTWEIGHTS_REFERENCE_DIR) /
                                              ("pytorch_" + name + ".safetensors"));
  const Matrix<double> x = tokens_of(file, "x");
  Net network = network_of(x.rows(), [&](const auto& v) { return layer(layer(v, 0), 1); });
  for (auto& weight : network.weights) weight.value = file.matrix<double>(weight.name);
  const Run given = train(network, 2, x, tokens_of(file, "dy"));
  check_equal(given.y, tokens_of(file, "y"), 1e-12);
  check_equal(given.dx, tokens_of(file, "dx"), 1e-12);
  for (const auto& gradient : given.grad.weights)
    check_equal(gradient.value, file.matrix<double>("grad." + gradient.name), 1e-12);
}

TEST_CASE("recurrent nets are PyTorch's, two layers of them", "[networks]") {
  check_pytorch("rnn", [](const auto& x, Index layer) { return rnn(x, "", 5, true, layer); });
  check_pytorch("lstm", [](const auto& x, Index layer) { return lstm(x, "", 5, true, layer); });
  check_pytorch("gru", [](const auto& x, Index layer) { return gru(x, "", 5, true, layer); });
}

// The weights of a layer, in the order of a network's.
template <class Layer> auto weights_of(Layer& layer) {
  return std::array<Eigen::Map<Matrix<double>>, 4>{
      {{layer.weight_ih.data(), layer.weight_ih.rows(), layer.weight_ih.cols()},
       {layer.weight_hh.data(), layer.weight_hh.rows(), layer.weight_hh.cols()},
       {layer.bias_ih.data(), layer.bias_ih.size(), 1},
       {layer.bias_hh.data(), layer.bias_hh.size(), 1}}};
}

template <class Layer> void check_layer(Layer layer, Index steps, const Function& net) {
  fw::Random random(3);
  const Net network = network_of(layer.inputs(), net);
  Layer expected = layer;
  auto from = weights_of(layer);
  auto gradients = weights_of(expected);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = network.weights[i].value;
  const Matrix<double> x = random_matrix(layer.inputs(), 2 * steps, random);
  const Matrix<double> dy = random_matrix(layer.outputs(), x.cols(), random);
  auto state = layer.initial_state(2);
  typename Layer::Trace trace;
  Matrix<double> y = dy, dx = x;
  layer.forward(state, x, y, trace, fw::Pass::train);
  for (auto& gradient : gradients) gradient.setZero();
  layer.backward(x, trace, dy, dx, expected);
  const Run given = train(network, 2, x, dy);
  check_equal(given.y, y, 1e-12);
  check_equal(given.dx, dx, 1e-12);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    check_equal(given.grad.weights[i].value, gradients[i], 1e-12);
}

TEST_CASE("recurrent nets are the layers of the same names", "[networks]") {
  for (const Index n : {1, 3, 17})
    for (const Index steps : {1, 6}) {
      check_layer(fw::Rnn<double>(3, n), steps, [&](const auto& x) { return rnn(x, "net", n); });
      check_layer(fw::Rnn<double, fw::Relu>(3, n), steps,
                  [&](const auto& x) { return rnn<Relu>(x, "net", n); });
      check_layer(fw::Lstm<double>(3, n), steps, [&](const auto& x) { return lstm(x, "net", n); });
    }
}

TEST_CASE("recurrent nets have PyTorch's names", "[networks]") {
  const Net network = network_of(2, [](const auto& x) { return gru(x, "net", 3, true, 1); });
  std::string names;
  for (const auto& weight : network.weights) names += weight.name + "\n";
  CHECK(names == "net.weight_ih_l1\nnet.weight_hh_l1\nnet.bias_ih_l1\nnet.bias_hh_l1\n");
}

TEST_CASE("recurrent nets refuse sizes, and states of others", "[networks]") {
  for (const Index n : {Index(0), Index(-1), Index(1) << 61})
    CHECK_THROWS_WITH(network_of(2, [&](const auto& x) { return gru(x, "net", n); }),
                      ContainsSubstring("net: ") && ContainsSubstring(" hidden units"));
  const Net small = network_of(2, [](const auto& x) { return lstm(x, "net", 3); });
  const Net large = network_of(2, [](const auto& x) { return lstm(x, "net", 4); });
  State state = large.initial_state();
  Net::Trace trace;
  CHECK_THROWS_WITH(run(small, state, Matrix<double>::Ones(2, 1), trace),
                    ContainsSubstring("the state has 8 rows"));
}

}  // namespace
