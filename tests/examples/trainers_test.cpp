#include <associative_retrieval_task.hpp>
#include <classifier_experiment.hpp>
#include <code_execution_task.hpp>
#include <recurrent_models.hpp>
#include <task_model.hpp>
#include <task_trainer.hpp>

#include "examples/gradient.hpp"

TEST_CASE("Classifiers: the gradient of every model", "[examples]") {
  const SymbolSequences data = draw_retrievals(5, 6, 3);
  std::vector<int> which(data.size()), batch;
  std::iota(which.begin(), which.end(), 0);
  data.gather(which, batch);
  for (const Kind& kind : recurrent_kinds) {
    INFO(kind.title);
    with_classifier(
        kind.key, SymbolEncoder<double>(retrieval_symbols, 5, 7), 6, 0.5, 3, [&](auto model) {
          using Model = decltype(model);
          const auto count = static_cast<fw::Index>(data.size());
          typename Model::Trace trace;
          Eigen::MatrixXd logits(10, count);
          fw::Random random(1);  // larger weights than at the start
          fw::for_each_parameter([&](const std::string&, auto& p) { random.fill(p, 0.4); }, model);
          const auto loss = [&](fw::Pass pass) {
            model.forward(batch, count, logits, trace, pass);
            return fw::cross_entropy(logits, data.targets, logits);
          };
          loss(fw::Pass::train);
          Model gradient = model;
          fw::set_zero_parameters(gradient);
          model.backward(batch, logits, trace, gradient);
          check_gradient(model, gradient, [&] { return loss(fw::Pass::infer); });
        });
  }
}

TEST_CASE("Classifiers: the parameters that are best in validation count", "[examples]") {
  const SymbolSequences train = draw_retrievals(1, 300, 1), one = draw_retrievals(2, 100, 1);
  SymbolSequences other = draw_retrievals(3, 100, 1);  // who has learnt the task errs all the more
  for (int& target : other.targets) target = (target + 1) % 10;
  const TrainingPlan plan{.steps = 150, .batch = 32, .warmup = 10, .evaluations = 30, .rate = 3e-3};
  with_classifier("irnn", SymbolEncoder(retrieval_symbols, 20, 20), 10, 0, 1, [&](auto model) {
    using Trainer = ClassifierTrainer<decltype(model), SymbolSequences>;
    long reports = 0;
    const Splits<SymbolSequences> data{train, one, other}, swapped{train, other, one};
    const TrainingResult result = Trainer(model, data, plan).train([&] { ++reports; });
    const TrainingResult tests = Trainer(model, swapped, plan).train([] {});
    CHECK(reports == 150);
    CHECK(result.curve.size() == 30);
    CHECK(result.curve.back().loss < result.curve.front().loss);
    const auto chosen = std::ranges::min_element(result.curve, {}, &CurvePoint::validation);
    CHECK(result.validation == chosen->validation);
    CHECK(result.validation < 0.8);  // a guess: 0.9
    // The training is the same, and its validation error the other's test error.
    const auto then = static_cast<std::size_t>(chosen - result.curve.begin());
    CHECK(result.test == tests.curve[then].validation);
    CHECK(result.test > tests.validation);  // not the parameters that are best in the test
  });
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

namespace {

const auto draw = [](std::uint64_t seed, std::uint64_t index) {
  return draw_program({2, 8, true}, seed, index);
};
const TaskModelOptions tiny{
    .symbols = code_answers, .layers = 1, .width = 8, .heads = 2, .hidden = 8};

}  // namespace

TEST_CASE("Tasks: the gradient of every model", "[examples]") {
  TaskModelOptions convolved = tiny;
  convolved.convolution = 3;
  for (const Kind& kind : task_model_kinds) {
    INFO(kind.title);
    with_task_model<double>(kind.key, convolved, [&](auto model) {
      fw::Random random(2);
      fw::initialise(model, random);
      TaskTrainer<decltype(model)> trainer(model, draw);
      trainer.gradient(model, 1, 0, 5);
      const auto gradient = trainer.gradient();
      check_gradient(model, gradient, [&] { return trainer.gradient(model, 1, 0, 5).loss; });
    });
  }
}

TEST_CASE("Tasks: shards add up, and evaluation scores what training does", "[examples]") {
  with_task_model("delta", tiny, [&](auto model) {
    fw::Random random(2);
    fw::initialise(model, random);
    TaskTrainer<decltype(model)> one(model, draw, 1), four(model, draw, 4);
    const auto whole = one.gradient(model, 1, 3, 9), sharded = four.gradient(model, 1, 3, 9);
    CHECK(whole.loss == Catch::Approx(sharded.loss));
    CHECK(whole.answers == sharded.answers);
    fw::for_each_parameter(
        [](const std::string& path, const auto& a, const auto& b) {
          INFO(path);
          CHECK((a - b).norm() <= 1e-5f * (1 + b.norm()));
        },
        one.gradient(), four.gradient());
    const auto held = four.evaluate(model, 1, 3), trained = four.gradient(model, 1, 0, 3);
    CHECK(held.loss == Catch::Approx(trained.loss));
    CHECK(held.complete == trained.complete);
  });
  TaskModelOptions odd = tiny;
  odd.heads = 3;
  CHECK_THROWS_WITH(with_task_model("sum", odd, [](auto) {}),
                    "the width is 8, expected a multiple of the 3 heads");
}
