#include "training/experiments/capacity_trainer.hpp"

#include <fastweights/fastweights.hpp>
#include <models/capacity/capacity_models.hpp>
#include <models/capacity/capacity_rules.hpp>

#include "examples/gradient.hpp"
#include "support/catch.hpp"
#include "support/largest_entry.hpp"

template class CapacityTrainer<double>;

namespace {

constexpr fw::Index symbols = 6, d_key = 4, length = 9;

// A recall of random keys and queries, and gradients of its answers.
Recall<double> random_recall(fw::Index queries) {
  fw::Random random(1);
  Recall<double> r;
  r.keys.resize(d_key, length);
  r.queries.resize(d_key, queries);
  r.danswers.resize(symbols, queries);
  r.answers.resize(symbols, queries);
  for (Eigen::MatrixXd* each : {&r.keys, &r.queries, &r.danswers}) random.fill(*each);
  for (fw::Index t = 0; t < length; ++t)
    r.values.push_back(static_cast<int>(random.below(symbols)));
  r.beta.setConstant(length, 0.7);
  r.clear_gradient();
  return r;
}

Eigen::MatrixXd one_hot(const std::vector<int>& values) {
  Eigen::MatrixXd v = Eigen::MatrixXd::Zero(symbols, static_cast<fw::Index>(values.size()));
  for (std::size_t t = 0; t < values.size(); ++t) v(values[t], static_cast<fw::Index>(t)) = 1;
  return v;
}

// By the library's memory: all pairs written, then each query read.
template <class M>
Eigen::MatrixXd by_memory(const M& m, const Eigen::MatrixXd& keys, const Eigen::MatrixXd& queries,
                          const Recall<double>& r) {
  const Eigen::MatrixXd v = one_hot(r.values);
  Eigen::MatrixXd y(symbols, queries.cols());
  auto state = fw::initial_state(m);
  for (fw::Index t = 0; t < keys.cols(); ++t) fw::write(m, state, {keys.col(t), v.col(t)});
  for (fw::Index q = 0; q < queries.cols(); ++q)
    fw::read(m, std::as_const(state), {queries.col(q)}, {y.col(q)});
  return y;
}

void check_rule(std::unique_ptr<RecallRule<double>> rule, bool repeats) {
  const CapacityOptions o{.symbols = static_cast<int>(symbols), .repeats = repeats, .d_key = d_key};
  CapacityTrainer<double> trainer(o, std::move(rule));
  fw::Random random(2);
  const RecallTask task(o.symbols, repeats);
  std::vector<RecallSequence> batch;
  for (int i = 0; i < 4; ++i) batch.push_back(task.training(random));
  batch.push_back(task.evaluation(random));  // with many queries
  trainer.loss(batch, true);
  CapacityNet<double> gradient = trainer.gradient();
  check_gradient(fw::detail::object(trainer.model()), fw::detail::object(gradient),
                 [&] { return trainer.loss(batch, false); });
}

template <class M> std::unique_ptr<RecallRule<double>> memory_rule(AnyMap<double> map) {
  return std::make_unique<MemoryRule<M>>(symbols, d_key, std::move(map));
}

}  // namespace

TEST_CASE("capacity: the sum rule by weights is the memory", "[examples]") {
  using Map = fw::Dpfp<2>;
  Recall<double> r = random_recall(3);
  SumRule<double> rule{AnyMap<double>(Map())};
  rule.forward(r);
  Eigen::MatrixXd keys(Map().features(d_key), length), queries(keys.rows(), 3);
  fw::apply(Map(), r.keys, keys);
  fw::apply(Map(), r.queries, queries);
  const fw::LinearAttention<double, -1, -1, fw::AttentionNormaliser<double>> m(
      {.key_size = keys.rows(), .value_size = symbols}, {1e-6});
  CHECK(largest_entry(r.answers - by_memory(m, keys, queries, r)) <= 1e-12);
}

TEST_CASE("capacity: softmax attention by weights is the cache", "[examples]") {
  Recall<double> r = random_recall(3);
  SoftmaxRule<double> rule;
  rule.forward(r);
  const fw::KeyValueCache<double> m({.key_size = d_key, .value_size = symbols},
                                    {.capacity = length});
  CHECK(largest_entry(r.answers - by_memory(m, r.keys, r.queries, r)) <= 1e-12);
}

TEST_CASE("capacity: the gated rule is (1 − β) W + β v kᵀ", "[examples]") {
  using Gated = fw::GatedLinearAttention<double, fw::Dynamic, fw::Dynamic, fw::KeyValueDecay>;
  Recall<double> r = random_recall(2);
  MemoryRule<Gated> rule(symbols, d_key, fw::IdentityMap());
  rule.forward(r);
  const Eigen::MatrixXd v = one_hot(r.values);
  Eigen::MatrixXd W = Eigen::MatrixXd::Zero(symbols, d_key);
  for (fw::Index t = 0; t < length; ++t)
    W = ((1 - r.beta[t]) * W + r.beta[t] * v.col(t) * r.keys.col(t).transpose()).eval();
  CHECK(largest_entry(r.answers - W * r.queries) <= 1e-12);
}

TEST_CASE("capacity: the gradients of the slow weights", "[examples]") {
  using Normalised = fw::SumNormalised<fw::EluPlusOne>;
  using Gated = fw::GatedLinearAttention<double, fw::Dynamic, fw::Dynamic, fw::KeyValueDecay>;
  check_rule(std::make_unique<SumRule<double>>(fw::EluPlusOne()), false);
  check_rule(std::make_unique<SoftmaxRule<double>>(), true);
  check_rule(memory_rule<fw::DeltaRule<double>>(Normalised()), true);
  check_rule(memory_rule<Gated>(Normalised()), true);
  check_rule(memory_rule<fw::FastWeightMemory<double>>(fw::TanhMap()), true);
}

TEST_CASE("capacity: a training learns, and again the same", "[examples]") {
  const CapacityOptions o{.symbols = 5, .repeats = true, .d_key = 16, .steps = 2000};
  const auto train = [&] { return train_capacity("linear_ours", o); };
  const CapacityResult first = train(), second = train();
  CHECK(first.loss < 0.02);  // that of guessing is 0.4
  CHECK(first.loss == second.loss);
  CHECK(first.best == second.best);
}
