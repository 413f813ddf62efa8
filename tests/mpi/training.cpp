// A model that ranks train together against one process with as many shards.

#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/models/language_model.hpp>
#include <fastweights/layers/models/pre_norm_block.hpp>
#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/layers/projections/feed_forward.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/mpi/training.hpp>
#include <fastweights/training/losses.hpp>

#include "mpi/memories.hpp"
#include "mpi/parts.hpp"

namespace {

using fw::Index;
using Mixer = fw::FastWeightLayer<fw::DeltaRule<float>, fw::L2Normalise>;
using Model =
    fw::LanguageModel<fw::PreNormBlock<fw::LayerNorm<float>, Mixer, fw::FeedForward<float>>>;

constexpr int symbols = 7, length = 12;

Model drawn(std::uint64_t seed) {
  Model model(symbols, 1,
              {Mixer({.d_model = 8, .heads = 2}, fw::DeltaRule<float>({.key_size = 4})),
               fw::FeedForward<float>(8, 16)});
  fw::Random random(seed);
  fw::initialise(model, random);
  return model;
}

// Adds the gradient of a sequence of a batch of `batch` that is drawn from its step and place.
double run(const Model& model, long long step, Index place, int batch, Model& gradient) {
  fw::Random random(static_cast<std::uint64_t>(1000 * step + place));
  std::vector<int> ids;
  for (int t = 0; t <= length; ++t) ids.push_back(static_cast<int>(random.below(symbols)));
  const fw::Symbols inputs = fw::Symbols(ids).first(length),
                    targets = fw::Symbols(ids).last(length);
  Model::Trace trace;
  Eigen::MatrixXf logits(symbols, length);
  auto state = model.initial_state();
  model.forward(state, inputs, logits, trace, fw::Pass::train);
  const float loss =
      fw::cross_entropy(logits, targets, logits, {.divisor = double(batch) * length});
  model.backward(inputs, trace, logits, gradient);
  return double{loss};
}

template <class Place>
void train(Model& model, fw::Trainer<Model>& trainer, int batch, Place place) {
  trainer.train(
      4, [](long long) { return 1e-2; },
      [&](long long step, Index shard, Model& gradient) {
        return run(model, step, place(shard), batch, gradient);
      },
      [](const fw::TrainingStep&) {});
}

}  // namespace

void mpi_test::check_training() {
  const fw::mpi::Ranks ranks(MPI_COMM_WORLD);
  const fw::TrainerOptions options{.optimiser = {.clip = 1}, .shards = ranks.size()};
  Model alone = drawn(1), together = drawn(static_cast<std::uint64_t>(1 + ranks.rank()));
  fw::Trainer<Model> one(alone, options), of_all(together, {.optimiser = {.clip = 1}, .shards = 1});
  train(alone, one, ranks.size(), [](Index shard) { return shard; });
  fw::mpi::join(of_all, MPI_COMM_WORLD);
  train(together, of_all, ranks.size(), [&](Index) { return Index{ranks.rank()}; });
  Index differ = 0;
  fw::for_each_parameter([&](const std::string&, const auto& a,
                             const auto& b) { differ += (a.array() != b.array()).count(); },
                         alone, together);
  const double worst = largest(static_cast<double>(differ));
  if (ranks.is_first())
    std::printf("mpi training of %td parameters, %d ranks: %g differ from one process\n",
                fw::parameter_count(alone), ranks.size(), worst);
  expect(worst == 0, "the same bits as training in one process");
  expect(of_all.optimiser().steps == 4, "four steps");
}
