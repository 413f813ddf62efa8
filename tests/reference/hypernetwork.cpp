#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/any_memory/table/sums.hpp>
#include <fastweights/layers/hypernetwork.hpp>

#include "case.hpp"

namespace reference {

namespace {

using Net = fw::Hypernetwork<double>;
using Block = fw::networks::Network<double>;

const Matrix& weight(const Block& block, const std::string& name) {
  for (const auto& each : block.weights)
    if (each.name == name + ".weight") return each.value;
  throw std::logic_error("no weight " + name);
}

// The weights of the construction. The file has one W_P per head; they are all equal.
void compare_weights(Case& file, const Net& net, const Block& block) {
  Array wq = file.like("Wq"), wk = file.like("Wk"), wv = file.like("Wv"), wp = file.like("Wp"),
        w1 = file.like("W1"), w2 = file.like("W2");
  const Index h = net.hidden();
  for (Index m = 0; m < net.programs(); ++m) {
    wq.matrix(m) = weight(block, "mixer.read.query").row(m).transpose();
    wk.matrix(m) = weight(block, "mixer.write.key").row(m).transpose();
    wv.matrix(m) = weight(block, "mixer.write.value").middleRows(m * h, h).transpose();
    wp.matrix(m) = weight(block, "mixer.output").transpose();
  }
  w1.matrix() = weight(block, "ffn.up").transpose();
  w2.matrix() = weight(block, "ffn.down").transpose();
  for (const auto& [name, ours] : std::map<std::string, Array>{
           {"Wq", wq}, {"Wk", wk}, {"Wv", wv}, {"Wp", wp}, {"W1", w1}, {"W2", w2}})
    file.forward(name, ours);
}

// The tokens before, between and after the layers.
void compare_tokens(Case& file, const Net& net, const Block& block, const Matrix& E) {
  Array e0 = file.like("E0"), e1 = file.like("E1_after_attention"),
        e2 = file.like("E2_after_mlp_tanh"), target = file.like("target");
  Matrix Y(E.rows(), E.cols());
  auto state = block.initial_state();
  Block::Trace trace;
  block.forward(state, E, Y, trace, fw::Pass::train);
  e0.matrix() = E.transpose();
  block.for_each_module(trace, [&](const std::string& path, auto in, auto) {
    if (path == "ffn") e1.matrix() = in.transpose();
  });
  e2.matrix() = Y.transpose();
  target.flat() = net.output(Y);
  file.forward("E0", e0);
  file.forward("E1_after_attention", e1);
  file.forward("E2_after_mlp_tanh", e2);
  file.forward("target", target);
}

// In full, where e1 sees e2 as well, and causally, by the sum rule and by the delta rule.
void construction(Case& file) {
  Array theta = file["Theta"], a = file["A"], x = file["x"], z = file["z"];
  std::vector<Matrix> programs;
  for (Index m = 0; m < theta.axis(0); ++m) programs.push_back(theta.matrix(m));
  for (const bool causal : {false, true}) {
    const Net net(programs, a.matrix(), {.causal = causal});
    const Matrix E = net.tokens(x.flat(), z.flat());
    const auto sum = net.block<fw::Tanh>();
    compare_weights(file, net, sum);
    compare_tokens(file, net, sum, E);
    compare_tokens(
        file, net,
        net.block<fw::Tanh>(fw::DeltaRule<double>({.key_size = 1, .value_size = net.hidden()})), E);
  }
}

}  // namespace

std::map<std::string, Test> hypernetwork_tests() {
  return {{"own_hypernet_construction", construction}};
}

}  // namespace reference
