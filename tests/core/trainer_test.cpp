// Training in shards, groups of parameters, and checkpoints that resume to the same bits.

#include <fastweights/io/training.hpp>
#include <fastweights/layers/feed_forward.hpp>
#include <fastweights/training/losses.hpp>
#include <fastweights/training/schedule.hpp>
#include <fastweights/training/trainer.hpp>
#include <filesystem>
#include <limits>

#include "support/affine_map.hpp"
#include "support/catch.hpp"
#include "support/largest_entry.hpp"

namespace {

using fw::Index;
using Matrix = Eigen::MatrixXd;
using Catch::Matchers::ContainsSubstring;

using Model = fw::networks::Network<double>;

Model random_model() {
  fw::networks::Builder<double> net;
  const auto normed = layer_norm(net.input(3), "norm", {.bias = true});
  Model model = net.build(feed_forward(normed, "ffn", {.hidden = 5}));
  fw::Random random(1);
  fw::initialise(model, random);
  return model;
}

Matrix& weight(Model& model, const std::string& name) {
  for (auto& each : model.weights)
    if (each.name == name) return each.value;
  throw std::logic_error("no weight " + name);
}

// Shard s of `shards` of batch `step`: some of 12 tokens, whose loss is the mean over all 12.
double gradient_of_shard(const Model& model, long long step, Index shard, Index shards,
                         Model& gradient) {
  fw::Random random(std::uint64_t(step) + 10);
  Matrix x(3, 12), target(3, 12);
  random.fill(x, 1);
  target = x.colwise().reverse();
  const Index count = 12 / shards;
  const Matrix own = x.middleCols(shard * count, count);
  Matrix y(3, count), dy(3, count);
  Model::Trace trace;
  auto state = model.initial_state();
  model.forward(state, own, y, trace, fw::Pass::train);
  const double loss =
      fw::squared_error(y, target.middleCols(shard * count, count), dy) / double(shards);
  dy /= double(shards);
  model.backward(trace, dy, gradient);
  return loss;
}

std::vector<double> train(Model& model, fw::Trainer<Model>& trainer, long long steps) {
  std::vector<double> losses;
  trainer.train(
      steps, fw::WarmupCosine{.peak = 1e-2, .warmup = 2, .total = 20},
      [&](long long step, Index shard, Model& gradient) {
        return gradient_of_shard(model, step, shard, trainer.shards(), gradient);
      },
      [&](const fw::TrainingStep& s) {
        CHECK(s.step == trainer.optimiser().steps);
        CHECK(s.gradient_norm > 0);
        losses.push_back(s.loss);
      });
  return losses;
}

bool same(const Model& a, const Model& b) {
  bool equal = true;
  fw::for_each_parameter(
      [&](const std::string&, const auto& x, const auto& y) { equal = equal && x == y; }, a, b);
  return equal;
}

TEST_CASE("Trainer: shards give the gradient of the batch, threads the same bits", "[training]") {
  Model one = random_model(), four = one, serial = one;
  fw::Trainer single(one, {.shards = 1}), sharded(four, {.shards = 4}),
      unthreaded(serial, {.shards = 4, .parallel = false});
  const auto losses = train(one, single, 20);
  CHECK(losses.back() < losses.front());
  CHECK(losses.size() == 20);
  const auto again = train(four, sharded, 20);
  for (std::size_t i = 0; i < losses.size(); ++i) CHECK(std::abs(again[i] - losses[i]) <= 1e-12);
  train(serial, unthreaded, 20);
  CHECK(same(four, serial));
  CHECK_FALSE(same(four, random_model()));
}

TEST_CASE("Trainer: gradients of several calls add up until the step", "[training]") {
  Model model = random_model(), parts = model;
  fw::Trainer whole(model, {.shards = 1}), accumulated(parts, {.shards = 2});
  whole.add_gradient([&](Index, Model& g) { return gradient_of_shard(model, 0, 0, 1, g); });
  for (Index half = 0; half < 2; ++half)
    accumulated.add_gradient(
        [&](Index shard, Model& g) { return gradient_of_shard(parts, 0, 2 * half + shard, 4, g); });
  fw::for_each_parameter(
      [](const std::string& path, const auto& a, const auto& b) {
        INFO(path);
        CHECK(largest_entry(a - b) <= 1e-15);
      },
      whole.gradient(), accumulated.gradient());
  accumulated.step(1e-3);
  CHECK(fw::gradient_norm(accumulated.gradient()) == 0);
  accumulated.add_gradient([&](Index, Model& g) { return gradient_of_shard(parts, 1, 0, 4, g); });
  accumulated.clear_gradient();
  CHECK(fw::gradient_norm(accumulated.gradient()) == 0);
  CHECK_THROWS_WITH(fw::Trainer(model, {.shards = 0}), ContainsSubstring("shards is 0"));
}

TEST_CASE("Trainer: an exception of a shard reaches the caller", "[training]") {
  Model model = random_model();
  fw::Trainer trainer(model);
  CHECK_THROWS_WITH(trainer.add_gradient([](Index shard, Model&) -> double {
    if (shard == 2) throw std::runtime_error("shard 2");
    return 0;
  }),
                    "shard 2");
}

TEST_CASE("training resumes from a checkpoint to the same bits", "[training]") {
  const auto path = std::filesystem::temp_directory_path() / "fastweights_trainer_test.safetensors";
  Model model = random_model(), resumed = random_model();
  fw::Trainer trainer(model, {.optimiser = {.clip = 0.1}});
  train(model, trainer, 8);
  fw::io::save_training(model, trainer.optimiser(), path, {{"seed", "1"}});
  train(model, trainer, 20);
  {
    fw::Trainer second(resumed, {.optimiser = {.clip = 0.1}});
    const auto metadata = fw::io::load_training(resumed, second.optimiser(), path);
    CHECK(metadata.at("seed") == "1");
    CHECK(second.optimiser().steps == 8);
    CHECK(train(resumed, second, 20).size() == 12);
  }
  CHECK(same(model, resumed));

  // Moments and steps that no training gives.
  const auto refuses = [&](const auto& change, const std::string& message) {
    fw::Trainer third(resumed);
    change(third.optimiser());
    fw::io::save_training(resumed, third.optimiser(), path);
    fw::AdamW<Model> into(resumed);
    CHECK_THROWS_WITH(fw::io::load_training(resumed, into, path), ContainsSubstring(message));
    CHECK(into.steps == 0);
  };
  refuses([](auto& o) { weight(o.first, "norm.bias")(0) = std::nan(""); },
          "moments of the optimiser are not finite");
  refuses([](auto& o) { weight(o.second, "norm.bias")(0) = -1; },
          "second moment of the optimiser is negative");
  refuses([](auto& o) { o.steps = -1; }, "\"steps\": expected one count of at least 0");
  refuses([](auto& o) { o.steps = std::numeric_limits<long long>::max(); },
          "\"steps\": expected one count of at least 0");

  // A file of another model changes nothing.
  AffineMap<double> other(2, 2);
  fw::Random random(1);
  fw::initialise(other, random);
  const AffineMap<double> before = other;
  fw::AdamW<AffineMap<double>> optimiser(other);
  CHECK_THROWS_AS(fw::io::load_training(other, optimiser, path), fw::io::SafeTensorsError);
  CHECK(other.weight == before.weight);
  CHECK(optimiser.steps == 0);
  std::filesystem::remove(path);
}

TEST_CASE("AdamW: groups have rates and decays of their own", "[training]") {
  Model model = random_model(), gradient = fw::zero_gradient(model);
  fw::for_each_parameter([](const std::string&, auto& g) { g.setOnes(); }, gradient);
  Model before = model;
  fw::AdamW<Model> optimiser(model, {.group = [](std::string_view path, bool is_vector) {
                               if (path == "ffn.linear1.weight")
                                 return fw::ParameterGroup{.rate = 0};
                               return fw::ParameterGroup{.rate = is_vector ? 0.5 : 2,
                                                         .weight_decay = is_vector ? 0 : 0.25};
                             }});
  optimiser.step(model, gradient, 0.1);
  const auto weight_of = [](Model& of, const char* name) { return weight(of, name).array(); };
  CHECK((weight_of(model, "ffn.linear1.weight") == weight_of(before, "ffn.linear1.weight")).all());
  // The first step of Adam has length r for a constant gradient.
  CHECK(largest_entry(
            (weight_of(model, "ffn.linear1.bias") - (weight_of(before, "ffn.linear1.bias") - 0.05))
                .matrix()) <= 1e-8);
  CHECK(largest_entry((weight_of(model, "ffn.linear2.weight") -
                       (weight_of(before, "ffn.linear2.weight") * (1 - 0.2 * 0.25) - 0.2))
                          .matrix()) <= 1e-8);
  CHECK(std::abs(weight(optimiser.first, "ffn.linear1.weight")(0, 0) - 0.1) <=
        1e-15);  // continues all the same

  optimiser.options.group = [](std::string_view path, bool) {
    return fw::ParameterGroup{.rate = path == "norm.bias" ? -1.0 : 1.0};
  };
  const Model kept = model;
  CHECK_THROWS_WITH(
      optimiser.step(model, gradient, 0.1),
      "AdamW: the group of norm.bias: rate is -1, expected a finite number of at least 0");
  CHECK(same(model, kept));
}

}  // namespace
