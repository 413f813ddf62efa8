#include <algorithm>
#include <models/classifiers/classifiers.hpp>
#include <numeric>
#include <tasks/associative_retrieval_task.hpp>
#include <training/any_model.hpp>
#include <training/experiments/classifier_experiment.hpp>

#include "examples/gradient.hpp"
#include "support/catch.hpp"

namespace {

void check_model_gradient(const std::string& kind, const Tokens& tokens, const SequenceBatch& batch,
                          std::span<const int> targets) {
  const auto model = make_classifier<double>(kind, tokens, 6, 0.5, 3);
  fw::Random random(1);  // larger weights than at the start
  const fw::detail::Object parameters = model->parameters();
  fw::detail::visit_leaves(&parameters, 1, [&](const fw::detail::Leaf* p, const auto&) {
    if (p->is_array && p->size() > 0) random.fill(p->entries<double>(), 0.4);
  });
  auto gradient = fw::zero_gradient(AnyModel<double>(*model));
  std::any buffers;
  model->run(batch, targets, buffers, &gradient.model());
  check_gradient(parameters, gradient.model().parameters(),
                 [&] { return model->run(batch, targets, buffers).loss; });
}

}  // namespace

TEST_CASE("Classifiers: the gradient of every model", "[examples]") {
  const SymbolSequences data = draw_retrievals(5, 6, 3);
  std::vector<int> all(data.size());
  std::iota(all.begin(), all.end(), 0);
  SequenceBatch batch;
  data.gather(all, batch);
  for (const Kind& kind : recurrent_kinds) {
    INFO(kind.title);
    check_model_gradient(kind.key, {5, retrieval_symbols, 7}, batch, data.targets);
  }
}

TEST_CASE("Classifiers: the gradient of vectors, in more sequences than fit the cache",
          "[examples]") {
  std::vector<int> targets(40);
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<int>(i) % 10;
  SequenceBatch batch;
  batch.vectors.resize(3, 2 * std::ssize(targets));
  fw::Random(7).fill(batch.vectors);
  check_model_gradient("lstm", {.size = 3, .encoded = 4}, batch, targets);
}

TEST_CASE("Classifiers: the parameters that are best in validation count", "[examples]") {
  const SymbolSequences train = draw_retrievals(1, 300, 1), one = draw_retrievals(2, 100, 1);
  SymbolSequences other =
      draw_retrievals(3, 100, 1);  // a model that learns the task errs more here
  for (int& target : other.targets) target = (target + 1) % 10;
  const TrainingPlan plan{.steps = 150, .batch = 32, .warmup = 10, .evaluations = 30, .rate = 3e-3};
  const auto train_on = [&](const Splits<SymbolSequences>& data, const auto& report) {
    const auto model = make_classifier<float>("irnn", {20, retrieval_symbols, 20}, 10, 0, 1);
    return train_classifier(*model, as_classified(data), plan, report);
  };
  long reports = 0;
  const TrainingResult result = train_on({train, one, other}, [&] { ++reports; });
  const TrainingResult tests = train_on({train, other, one}, [] {});
  CHECK(reports == 150);
  CHECK(result.curve.size() == 30);
  CHECK(result.curve.back().loss < result.curve.front().loss);
  const auto chosen = std::ranges::min_element(result.curve, {}, &CurvePoint::validation);
  CHECK(result.validation == chosen->validation);
  CHECK(result.validation < 0.8);  // a guess: 0.9
  // Both trainings have the same steps; the validation error of one is the test error of the other.
  const auto then = static_cast<std::size_t>(chosen - result.curve.begin());
  CHECK(result.test == tests.curve[then].validation);
  CHECK(result.test > tests.validation);  // not the parameters that are best in the test
}

TEST_CASE("Classifiers: the run that is best in validation counts, whatever its test error",
          "[examples]") {
  std::vector<Run> runs{{"fast", 20, 3e-3, 0.5, 9, {}},
                        {"fast", 20, 1e-3, 0.5, 9, {}},
                        {"fast", 50, 1e-3, 0.5, 9, {}},
                        {"lstm", 20, 1e-3, 0, 9, {}}};
  const auto errors = [&](std::size_t run, double validation, double test) {
    runs[run].result.validation = validation;
    runs[run].result.test = test;
  };
  errors(0, 0.2, 0.1);
  errors(1, 0.1, 0.3);
  errors(2, 0.0, 0.0);
  errors(3, 0.0, 0.0);
  CHECK(&best_run(runs, "fast", 20) == &runs[1]);
  CHECK_THROWS_WITH(best_run(runs, "lstm", 50), "no run of lstm");
}

TEST_CASE("Classifiers: sizes with steps of their own", "[examples]") {
  Experiment e;
  e.models = {"lstm", "fast"};
  e.units = {20, 50};
  e.rates = {1e-2, 1e-3};
  e.etas = {0.1, 0.2, 0.3};
  e.plan.steps = 100;
  e.steps = {{20, 300}};
  const std::vector<Run> runs = planned_runs(e);
  CHECK(runs.size() == 2 * (2 + 6));
  for (const Run& run : runs) CHECK(run.steps == (run.units == 20 ? 300 : 100));
  for (const std::size_t i : {0U, 1U}) {  // the longest training first
    CHECK(runs[longest_first(runs)[i]].kind == "lstm");
    CHECK(runs[longest_first(runs)[i]].units == 20);
  }
}
