// limit: 12, 600 MiB
// A small language model learns to count, is saved and loaded, and gives the same logits again.
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/io/weights.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/models/language_model.hpp>
#include <fastweights/layers/models/pre_norm_block.hpp>
#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/layers/projections/feed_forward.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/training/adamw.hpp>
#include <fastweights/training/losses.hpp>
#include <filesystem>

using Mixer = fw::FastWeightLayer<fw::DeltaRule<float>, fw::L2Normalise>;
using Block = fw::PreNormBlock<fw::LayerNorm<float>, Mixer, fw::FeedForward<float>>;
using Model = fw::LanguageModel<Block>;

int main() {
  const std::vector<int> text{0, 1, 2, 3, 4, 5, 6, 7}, next{1, 2, 3, 4, 5, 6, 7, 0};
  Model model(8, 2,
              Block(Mixer({.d_model = 16, .heads = 2}, fw::DeltaRule<float>({.key_size = 8})),
                    fw::FeedForward<float>(16, 32)));
  fw::Random random(1);
  fw::initialise(model, random);
  fw::AdamW<Model> optimiser(model);
  Model::Trace trace;
  Eigen::MatrixXf logits(8, 8), dlogits(8, 8);
  float first = 0, loss = 0;
  for (int step = 0; step < 20; ++step) {
    auto state = model.initial_state();
    model.forward(state, text, logits, trace, fw::Pass::train);
    loss = fw::cross_entropy(logits, next, dlogits);
    if (step == 0) first = loss;
    Model gradient = fw::zero_gradient(model);
    model.backward(text, trace, dlogits, gradient);
    optimiser.step(model, gradient, 1e-2);
  }

  const auto path =
      std::filesystem::temp_directory_path() / "fastweights_trained_model.safetensors";
  fw::io::save(model, path);
  Model loaded = fw::zero_gradient(model);
  fw::io::load(loaded, path);
  std::filesystem::remove(path);
  Eigen::MatrixXf loaded_logits(8, 8);
  auto state = model.initial_state(), loaded_state = loaded.initial_state();
  model.forward(state, text, logits, trace);
  loaded.forward(loaded_state, text, loaded_logits, trace);
  return loss < first / 2 && loaded_logits == logits ? 0 : 1;
}
