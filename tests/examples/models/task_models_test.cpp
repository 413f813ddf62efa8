#include <fastweights/io/training.hpp>
#include <filesystem>
#include <models/algorithmic/task_model.hpp>
#include <models/language_model.hpp>
#include <tasks/code_execution_task.hpp>
#include <training/sequence_trainer.hpp>

#include "data_folder.hpp"
#include "examples/gradient.hpp"
#include "support/catch.hpp"

namespace {

// Sequences first, first + 1, … of a seed.
auto programs(std::uint64_t seed, long first) {
  return [seed, first](long i) {
    return draw_program({.variables = 2, .statements = 8}, seed,
                        static_cast<std::uint64_t>(first + i));
  };
}

const TaskModelOptions tiny{
    .symbols = code_answers, .layers = 1, .width = 8, .heads = 2, .hidden = 8};

}  // namespace

TEST_CASE("Tasks: the gradient of every model", "[examples]") {
  TaskModelOptions convolved = tiny;
  convolved.convolution = 3;
  for (const Kind& kind : task_model_kinds) {
    INFO(kind.title);
    const auto model = make_task_model<double>(kind.key, convolved);
    fw::Random random(2);
    model->initialise(random);
    std::vector<TaskSequence> sequences;
    for (long i = 0; i < 5; ++i) sequences.push_back(programs(1, 0)(i));
    check_sequence_gradient(*model, sequences);
  }
}

TEST_CASE("Tasks: shards add up, and evaluation scores what training does", "[examples]") {
  const auto model = make_task_model("delta", tiny);
  fw::Random random(2);
  model->initialise(random);
  SequenceTrainer one(*model, {}, 1), four(*model, {}, 4);
  const Score whole = one.compute_gradient(9, programs(1, 3));
  const Score sharded = four.compute_gradient(9, programs(1, 3));
  CHECK(whole.loss == Catch::Approx(sharded.loss));
  CHECK(whole.accuracy() == sharded.accuracy());
  const std::array gradients{one.gradient().parameters(), four.gradient().parameters()};
  fw::detail::visit_leaves(gradients.data(), gradients.size(),
                           [](const fw::detail::Leaf* leaves, const fw::detail::LeafPath& path) {
                             if (!leaves->is_array || leaves->size() == 0) return;
                             const auto a = leaves[0].entries<float>().matrix(),
                                        b = leaves[1].entries<float>().matrix();
                             INFO(path.text());
                             CHECK((a - b).norm() <= 1e-5f * (1 + b.norm()));
                           });
  const Score held_out = four.evaluate(3, programs(1, 0));
  const Score trained = four.compute_gradient(3, programs(1, 0));
  CHECK(held_out.loss == Catch::Approx(trained.loss));
  CHECK(held_out.complete_share() == trained.complete_share());
  TaskModelOptions odd = tiny;
  odd.heads = 3;
  CHECK_THROWS_WITH(make_task_model("sum", odd),
                    "the width is 8, expected a multiple of the 3 heads");
}

TEST_CASE("Tasks: training continues from a checkpoint to the same bits", "[examples]") {
  const auto file = std::filesystem::temp_directory_path() / "fastweights_task.safetensors";
  const auto train = [](SequenceTrainer& trainer, long steps) {
    trainer.train(
        steps, 6, [](long long) { return 1e-2; }, [](long step) { return programs(1, 6 * step); },
        [](const SequenceTrainer::Step&, const Score&) {});
  };
  const auto initialised = [] {
    auto model = make_task_model("delta", tiny);
    fw::Random random(2);
    model->initialise(random);
    return model;
  };
  const auto whole = initialised(), part = initialised(), resumed = make_task_model("delta", tiny);
  SequenceTrainer of_whole(*whole), of_part(*part), of_resumed(*resumed);
  train(of_whole, 5);
  train(of_part, 2);
  fw::io::save_training(of_part.model(), of_part.optimiser(), file, {{"seed", "1"}});
  CHECK(fw::io::load_training(of_resumed.model(), of_resumed.optimiser(), file).at("seed") == "1");
  CHECK(of_resumed.optimiser().steps == 2);
  train(of_resumed, 5);
  const std::array models{whole->parameters(), resumed->parameters()};
  fw::detail::visit_leaves(
      models.data(), models.size(),
      [](const fw::detail::Leaf* leaves, const fw::detail::LeafPath& path) {
        INFO(path.text());
        if (leaves->is_array)
          CHECK((leaves[0].entries<float>() == leaves[1].entries<float>()).all());
      });
  std::filesystem::remove(file);
}

TEST_CASE("Tasks: the weights of version 0.2 load, and give the same logits", "[examples]") {
  const auto file = fw::io::SafeTensors::read(std::filesystem::path(FASTWEIGHTS_REFERENCE_DIR) /
                                              "version_0_2.safetensors");
  const auto model = make_task_model(
      "delta", {.symbols = 3, .layers = 1, .width = 4, .heads = 2, .hidden = 4, .convolution = 2});
  auto& network = dynamic_cast<LanguageModel<float>&>(*model).network;
  fw::io::load_parameters(network, file, "model.weights");
  const auto ids = file.values<int>("model.ids");
  Eigen::MatrixXf logits(3, std::ssize(ids));
  auto state = network.initial_state();
  fw::networks::Network<float>::Trace trace;
  network.forward(state, ids, logits, trace);
  CHECK(logits.isApprox(file.matrix<float>("model.logits"), 1e-5f));
}
