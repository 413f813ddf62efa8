#include <fastweights/algorithms/backward.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "together.hpp"

namespace {

constexpr Index dk = 17, dv = 33, tokens = 130;

// Steps, a scan, a chunked scan and gradients; the kernels' buffers belong to the threads.
MatrixXf every_form(const fw::DeltaRule<float>& m) {
  MatrixXf keys = random_matrix(dk, tokens, 1);
  keys.colwise().normalize();
  const MatrixXf values = random_matrix(dv, tokens, 2);
  const Eigen::VectorXf beta = Eigen::VectorXf::Constant(tokens, 0.5f);
  MatrixXf out(dv, 4 * tokens);
  const auto part = [&](Index i) { return out.middleCols(i * tokens, tokens); };
  for (int round = 0; round < 3; ++round) {
    auto by_step = fw::initial_state(m), by_chunk = by_step, by_scan = by_step;
    for (Index t = 0; t < tokens; ++t)
      fw::step(m, by_step, {keys.col(t), values.col(t), beta[t]}, {keys.col(t)}, {out.col(t)});
    fw::chunked_scan(m, by_chunk, {keys, values, beta}, {keys}, {part(1)}, 16);
    fw::Checkpoints<fw::DeltaRule<float>> checkpoints;
    fw::scan(m, by_scan, {keys, values, beta}, {keys}, {part(2)}, checkpoints);
    MatrixXf dkeys = MatrixXf::Zero(dk, tokens), dqueries = dkeys;
    Eigen::VectorXf dbeta = Eigen::VectorXf::Zero(tokens);
    part(3).setZero();
    auto ds = fw::zero_gradient(m);
    fw::backward(m, checkpoints, {keys, values, beta}, {keys}, {part(2)}, ds,
                 {dkeys, part(3), dbeta}, {dqueries});
  }
  return out;
}

MatrixXf decoded(const fw::Deferred<fw::GatedDeltaRule<float>>& m) {
  MatrixXf keys = random_matrix(dk, tokens, 3);
  keys.colwise().normalize();
  const MatrixXf values = random_matrix(dv, tokens, 4);
  MatrixXf out(dv, tokens);
  auto state = fw::initial_state(m);
  for (Index t = 0; t < tokens; ++t)
    fw::step(m, state, {keys.col(t), values.col(t), 0.5f, 0.9f}, {keys.col(t)}, {out.col(t)});
  return out;
}

// The heads of one token sequence: disjoint rows of shared matrices, as for_each_head runs them.
MatrixXf heads_in_threads(const fw::DeltaRule<float>& m, bool parallel) {
  const MatrixXf keys = random_matrix(dk * thread_count, tokens, 5) * 0.2f;
  const MatrixXf values = random_matrix(dv * thread_count, tokens, 6);
  const Eigen::VectorXf beta = Eigen::VectorXf::Constant(tokens, 0.5f);
  MatrixXf out(dv * thread_count, tokens);
  std::vector<fw::StateOf<fw::DeltaRule<float>>> states(thread_count, fw::initial_state(m));
  const auto run = [&](int h) {
    const auto k = keys.middleRows(h * dk, dk);
    fw::scan(m, states[static_cast<std::size_t>(h)], {k, values.middleRows(h * dv, dv), beta}, {k},
             {out.middleRows(h * dv, dv)});
  };
  if (parallel)
    together(run);
  else
    for (int h = 0; h < thread_count; ++h) run(h);
  return out;
}

}  // namespace

void check_rules() {
  const fw::DeltaRule<float> delta({.key_size = dk, .value_size = dv});
  const fw::Deferred<fw::GatedDeltaRule<float>> deferred(
      fw::GatedDeltaRule<float>({.key_size = dk, .value_size = dv}));
  check_same("DeltaRule: steps, scan, chunked scan, gradients",
             [&](int) { return every_form(delta); });
  check_same("Deferred GatedDeltaRule: steps", [&](int) { return decoded(deferred); });
  const bool same = heads_in_threads(delta, true) == heads_in_threads(delta, false);
  std::printf("%-72s %s\n", "DeltaRule: heads in threads", same ? "same" : "differ");
  failures += same ? 0 : 1;
}
