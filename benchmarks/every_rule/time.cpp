#include "every_rule/time.hpp"

#include <cmath>
#include <stdexcept>

#include "machine.hpp"

namespace every_rule {

namespace {

using fw::detail::Leaf;
using fw::detail::LeafPath;

struct Head {
  State state;
  fw::testing::AnySequences<float> tokens;
};

void set_by_roles(Inputs& record) {
  for (std::size_t i = 0; i < record.matrices.size(); ++i) {
    const fw::Role role = record.members()[i].role;
    if (role == fw::Role::key) record.matrices[i].colwise().normalize();
    if (role == fw::Role::decay)
      record.matrices[i].array() = 0.8f + 0.2f * record.matrices[i].array();
  }
}

// A model that is trained starts from random weights.
void start(State& state, fw::Random& random) {
  fw::detail::visit_all_leaves(
      [&](const Leaf* leaf, const LeafPath& path) {
        const std::string name = path.text();
        if (name.substr(0, name.find('.')) != "weights") return;
        random.fill(leaf->entries<float>(), 1 / std::sqrt(static_cast<double>(leaf->cols)));
      },
      state);
}

std::vector<Head> random_heads(const Rule& rule, Index heads, Index length) {
  fw::Random random(1);
  Head head{rule.memory.initial_state(),
            fw::testing::random_sequences(rule.memory, length, random, /*positive=*/true)};
  set_by_roles(head.tokens.inputs);
  set_by_roles(head.tokens.queries);
  start(head.state, random);
  if (rule.prepare != nullptr) rule.prepare(head.tokens.inputs, head.state);
  return std::vector<Head>(static_cast<std::size_t>(heads), head);
}

}  // namespace

double scan_seconds(const Rule& rule, Index heads, Index length) {
  std::vector<Head> all = random_heads(rule, heads, length);
  const double start = machine::processor_clock();
  for (Head& head : all) fw::testing::scan(rule.memory, head.state, head.tokens);
  const double seconds = machine::processor_clock() - start;
  if (!all.back().tokens.outputs["output"].allFinite())
    throw std::runtime_error("the outputs are not finite");
  return seconds;
}

double backward_seconds(const Rule& rule, Index heads, Index length) {
  std::vector<Head> all = random_heads(rule, heads, length), gradients = all;
  std::vector<fw::AnyCheckpoints<float>> checkpoints(all.size());
  const auto run = [&](std::size_t h) {
    auto& [inputs, queries, outputs] = all[h].tokens;
    auto& [state, gradient] = gradients[h];
    rule.memory.backward(checkpoints[h], inputs.views(), queries.views(), outputs.views(), state,
                         gradient.inputs.views<float>(), gradient.queries.views<float>());
  };
  for (std::size_t h = 0; h < all.size(); ++h) {
    auto& [inputs, queries, outputs] = all[h].tokens;
    rule.memory.scan(all[h].state, inputs.views(), queries.views(), outputs.views<float>(),
                     checkpoints[h]);
  }
  run(0);  // allocates buffers
  const double start = machine::processor_clock();
  for (std::size_t h = 0; h < all.size(); ++h) run(h);
  return machine::processor_clock() - start;
}

double function_seconds(Functions::Kind kind) {
  constexpr Index count = 2048, repeats = 4000;
  const Eigen::ArrayXf x = -4 * Eigen::ArrayXf::Random(count).abs();
  Eigen::ArrayXf y = x;
  const double start = machine::processor_clock();
  for (Index i = 0; i < repeats; ++i) {
    y[i % count] = x[i % count];  // so that no round is that before
    if (kind == Functions::tanh)
      y = (x + 1e-30f * y).tanh();
    else
      y = (x + 1e-30f * y).exp();
  }
  const double seconds = machine::processor_clock() - start;
  if (!y.allFinite()) throw std::runtime_error("a function is not finite");
  return seconds / static_cast<double>(count * repeats);
}

}  // namespace every_rule
