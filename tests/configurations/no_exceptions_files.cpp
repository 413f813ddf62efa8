// Files, networks and the ONNX operator without exceptions and run-time type information. Without
// an argument it saves and loads a state, runs a network and the operator. With the argument
// "error" it reads a file that is cut off, which must print the error and abort.
#include <fastweights/io/weights.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/networks/network.hpp>
#include <fastweights/networks/operations.hpp>
#include <fastweights/onnx/linear_attention.hpp>
#include <vector>

#include "without_exceptions.hpp"

namespace {

using Memory = fw::DeltaRule<double>;
using State = fw::StateOf<Memory>;

const Memory delta_rule({.key_size = 5, .value_size = 7});

State written_state() {
  auto state = fw::initial_state(delta_rule);
  const Eigen::VectorXd key = Eigen::VectorXd::Ones(5), value = Eigen::VectorXd::LinSpaced(7, 0, 1);
  fw::write(delta_rule, state, {key, value, 0.1});
  return state;
}

std::vector<std::byte> saved(const State& state) {
  fw::io::SafeTensorsWriter writer;
  fw::io::add_state(writer, state);
  return writer.bytes();
}

void a_saved_state_is_loaded() {
  const auto state = written_state();
  auto loaded = fw::initial_state(delta_rule);
  fw::io::load_state(delta_rule, loaded, fw::io::SafeTensors::parse(saved(state)));
  check(loaded.W == state.W && state.W.norm() > 0, "a loaded state");
}

// An operation finds its state by the type.
void a_network_goes_on_from_its_state() {
  using namespace fw;
  using namespace fw::networks;
  Builder<double> builder;
  const auto x = builder.input(4);
  auto network = builder.build(
      memory(fw::DeltaRule<double>({4, 4}), {l2(x, 1), x, sigmoid(linear(x, "b", 1))}, {x}));
  fw::Random random(1);
  fw::initialise(network, random);
  const Eigen::MatrixXd inputs = Eigen::MatrixXd::Random(4, 6);
  Eigen::MatrixXd whole(4, 6), parts(4, 6);
  Network<double>::Trace trace;
  networks::State once = network.initial_state(), twice = network.initial_state();
  network.forward(once, inputs, whole, trace);
  network.forward(twice, inputs.leftCols(3), parts.leftCols(3), trace);
  network.forward(twice, inputs.rightCols(3), parts.rightCols(3), trace);
  check((whole - parts).norm() < 1e-12 * whole.norm(), "a network in two parts");
}

// One head of one number: S += β k (v − S k), o = S q.
void the_operator_equals_its_equation() {
  std::vector<double> q{1, 2}, k{0.5, 1}, v{3, 4}, beta{1, 0.5}, o(2);
  fw::onnx::linear_attention<double>({.scale = 1, .update_rule = "delta"},
                                     {.query = {q.data(), {1, 2, 1}},
                                      .key = {k.data(), {1, 2, 1}},
                                      .value = {v.data(), {1, 2, 1}},
                                      .beta = {beta.data(), {1, 2, 1}},
                                      .output = {o.data(), {1, 2, 1}}});
  check(o[0] == 1.5 && o[1] == 2 * (1.5 + 0.5 * (4 - 1.5)), "the operator's outputs");
}

}  // namespace

int main(int count, char**) {
  if (count > 1) {
    auto bytes = saved(written_state());
    bytes.pop_back();
    fw::io::SafeTensors::parse(bytes);
    return 0;
  }
  a_saved_state_is_loaded();
  a_network_goes_on_from_its_state();
  the_operator_equals_its_equation();
  return failures;
}
