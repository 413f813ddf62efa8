#include <associative_retrieval_task.hpp>
#include <classifier_trainer.hpp>
#include <code_execution_task.hpp>
#include <recurrent_models.hpp>
#include <task_model.hpp>
#include <task_trainer.hpp>

#include "examples/float_gradient.hpp"

TEST_CASE("Classifiers: the gradient of every model", "[examples]") {
  const SymbolSequences data = draw_retrievals(5, 6, 3);
  std::vector<int> which(data.size()), batch;
  std::iota(which.begin(), which.end(), 0);
  data.gather(which, batch);
  for (const Kind& kind : recurrent_kinds) {
    INFO(kind.title);
    with_classifier(kind.key, SymbolEncoder(retrieval_symbols, 5, 7), 6, 0.5, 3, [&](auto model) {
      using Model = decltype(model);
      const auto count = static_cast<fw::Index>(data.size());
      typename Model::Trace trace;
      Eigen::MatrixXf logits(10, count);
      const auto loss = [&](fw::Pass pass) {
        model.forward(batch, count, logits, trace, pass);
        return static_cast<double>(fw::cross_entropy(logits, data.targets, logits));
      };
      loss(fw::Pass::train);
      Model gradient = model;
      fw::set_zero_parameters(gradient);
      model.backward(batch, logits, trace, gradient);
      check_gradient_in_float(
          model, gradient, [&] { return loss(fw::Pass::infer); }, 1e-3);
    });
  }
}

TEST_CASE("Classifiers: the best of all runs in validation counts", "[examples]") {
  const SymbolSequences some = draw_retrievals(1, 300, 1), others = draw_retrievals(2, 200, 1);
  const Splits<SymbolSequences> data{some, others, others};
  const TrainingPlan plan{.steps = 150, .batch = 32, .warmup = 10, .evaluations = 7, .rate = 3e-3};
  with_classifier("irnn", SymbolEncoder(retrieval_symbols, 20, 20), 10, 0, 1, [&](auto model) {
    long reports = 0;
    ClassifierTrainer<decltype(model), SymbolSequences> trainer(model, data, plan);
    const TrainingResult result = trainer.train([&] { ++reports; });
    CHECK(reports == 150);
    CHECK(result.curve.size() == 8);  // every 21 steps, and the last
    CHECK(result.curve.back().loss < result.curve.front().loss);
    double best = 1;
    for (const CurvePoint& point : result.curve) best = std::min(best, point.validation);
    CHECK(result.validation == best);
    CHECK(result.test == best);  // on the same sequences
    CHECK(best < 0.8);           // a guess: 0.9
  });
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
    with_task_model(kind.key, convolved, [&](auto model) {
      fw::Random random(2);
      fw::initialise(model, random);
      TaskTrainer<decltype(model)> trainer(model, draw);
      trainer.gradient(model, 1, 0, 5);
      const auto gradient = trainer.gradient();
      check_gradient_in_float(
          model, gradient, [&] { return trainer.gradient(model, 1, 0, 5).loss; }, 1e-3);
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
