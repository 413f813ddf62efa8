#include <fastweights/io/safetensors.hpp>

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

// Seven tokens have several steps of W_hh between the first and the last.
TEST_CASE("recurrent nets: gradients of longer sequences", "[networks]") {
  const auto check = [](const Function& f) { check_gradients(network_of(3, f), f, 7); };
  for (const Index n : {1, 5, 20})
    for (const bool bias : {false, true}) {
      INFO(n << " units, bias " << bias);
      check([&](const auto& x) { return rnn(x, "net", n, bias); });
      check([&](const auto& x) { return rnn<Relu>(x, "net", n, bias); });
      check([&](const auto& x) { return lstm(x, "net", n, bias); });
      check([&](const auto& x) { return gru(x, "net", n, bias); });
    }
}

TEST_CASE("recurrent nets: several sequences at once give the results of each alone",
          "[networks]") {
  for (const Index n : {1, 3, 17, 63}) {
    INFO(n << " units");
    for (const Function& f : {Function([&](const auto& x) { return rnn(x, "net", n); }),
                              Function([&](const auto& x) { return lstm(x, "net", n, false); }),
                              Function([&](const auto& x) { return gru(x, "net", n); })})
      for (const Index sequences : {1, 2, 5})
        for (const Index steps : {1, 2, 9}) check_batch(network_of(4, f), sequences, steps);
  }
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
  State state = network.initial_state(2);
  Net::Trace trace;
  const Trained given = train(network, state, x, tokens_of(file, "dy"), trace);
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

TEST_CASE("rnn: two tokens by hand", "[networks]") {
  Net network = network_of(1, [](const auto& x) { return rnn(x, "net", 2); });
  weight(network, "net.weight_ih_l0") << 0.5, -1;
  weight(network, "net.weight_hh_l0") << 0, 2, 1, 0;
  weight(network, "net.bias_ih_l0") << 0.25, 0;
  weight(network, "net.bias_hh_l0") << 0, 0.5;
  Matrix<double> x(1, 2), expected(2, 2);
  x << 1, -2;
  const double a = std::tanh(0.75), b = std::tanh(-0.5);
  expected << a, std::tanh(-0.75 + 2 * b), b, std::tanh(2.5 + a);
  State state = network.initial_state();
  Net::Trace trace;
  const Matrix<double> y = run(network, state, x, trace);
  CHECK(largest_entry(y - expected) <= 1e-15);
  CHECK(record_of<RecurrentState<double>>(state).hidden == y.col(1));
}

TEST_CASE("rnn: ReLU units with identity weights sum their inputs", "[networks]") {
  Net network = network_of(2, [](const auto& x) { return rnn<Relu>(x, "net", 2); });
  start_at_identity(network, "net.weight_hh_l0");
  weight(network, "net.weight_ih_l0").setIdentity();
  for (const char* bias : {"net.bias_ih_l0", "net.bias_hh_l0"}) weight(network, bias).setZero();
  Matrix<double> x(2, 4), expected(2, 4);
  x << 1, 2, 0, 0.5, -1, 3, -1, 0;
  expected << 1, 3, 3, 3.5, 0, 3, 2, 2;
  State state = network.initial_state();
  Net::Trace trace;
  CHECK(run(network, state, x, trace) == expected);
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

TEST_CASE("lstm: two tokens by hand, the gates in PyTorch's order", "[networks]") {
  Net network = network_of(1, [](const auto& x) { return lstm(x, "net", 1); });
  weight(network, "net.weight_ih_l0") << 0.5, -1, 2, 1;  // input, forget, cell, output
  weight(network, "net.weight_hh_l0") << 1, 0.5, -1, 3;
  weight(network, "net.bias_ih_l0") << 0.1, 1, 0, -0.5;
  weight(network, "net.bias_hh_l0") << 0, 0, 0.2, 0;
  const auto step = [](double x, double& h, double& c) {
    const double i = logistic(0.5 * x + h + 0.1), f = logistic(-x + 0.5 * h + 1);
    const double g = std::tanh(2 * x - h + 0.2), o = logistic(x + 3 * h - 0.5);
    c = f * c + i * g;
    return h = o * std::tanh(c);
  };
  Matrix<double> x(1, 2);
  x << 1, -0.5;
  State state = network.initial_state();
  Net::Trace trace;
  const Matrix<double> y = run(network, state, x, trace);
  double h = 0, c = 0;
  CHECK(y(0, 0) == Catch::Approx(step(1, h, c)).epsilon(1e-15));
  CHECK(y(0, 1) == Catch::Approx(step(-0.5, h, c)).epsilon(1e-15));
  const Matrix<double>& hidden = record_of<RecurrentState<double>>(state).hidden;  // h, then c
  CHECK(hidden(0, 0) == y(0, 1));
  CHECK(hidden(1, 0) == Catch::Approx(c).epsilon(1e-15));
}

TEST_CASE("recurrent nets start uniformly in ±1/√R", "[networks]") {
  Builder<float> builder;
  Network<float> network = builder.build(lstm(builder.input(50), "net", 100));
  fw::Random random(1);
  fw::initialise(network, random);
  REQUIRE(network.weights[1].name == "net.weight_hh_l0");
  const auto &input = network.weights[0].value, &hidden = network.weights[1].value;
  CHECK(hidden.cwiseAbs().maxCoeff() <= 0.1f);
  CHECK(network.weights[3].value.cwiseAbs().maxCoeff() <= 0.1f);
  // The mean square of 40000 uniform numbers is 0.01/3 ± 1.5e-5.
  CHECK(hidden.squaredNorm() / 40000 == Catch::Approx(0.01 / 3).epsilon(0.025));
  CHECK(input.squaredNorm() / 20000 == Catch::Approx(0.01 / 3).epsilon(0.035));
}

TEST_CASE("recurrent nets have PyTorch's names", "[networks]") {
  const Net network = network_of(2, [](const auto& x) { return gru(x, "net", 3, true, 1); });
  CHECK(names_of_weights(network) ==
        "net.weight_ih_l1\nnet.weight_hh_l1\nnet.bias_ih_l1\nnet.bias_hh_l1\n");
  const Net alone = network_of(2, [](const auto& x) { return lstm(x, "", 3, false); });
  CHECK(names_of_weights(alone) == "weight_ih_l0\nweight_hh_l0\n");
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
  State taller = small.initial_state();
  record_of<RecurrentState<double>>(taller).hidden.setZero(7, 1);  // h of 3 units, c of 4
  CHECK_THROWS_WITH(run(small, taller, Matrix<double>::Ones(2, 1), trace),
                    ContainsSubstring("the state has 7 rows"));
}

}  // namespace
