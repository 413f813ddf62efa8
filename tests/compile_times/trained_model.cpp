// limit: 12, 600 MiB
// A small language model learns to count, is saved and loaded, and gives the same logits again.
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/io/weights.hpp>
#include <fastweights/layers/fast_weights.hpp>
#include <fastweights/layers/feed_forward.hpp>
#include <fastweights/layers/language_model.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/training/adamw.hpp>
#include <fastweights/training/losses.hpp>
#include <filesystem>

using Model = fw::networks::Network<float>;

int main() {
  const std::vector<int> text{0, 1, 2, 3, 4, 5, 6, 7}, next{1, 2, 3, 4, 5, 6, 7, 0};
  Model model = fw::networks::language_model<float>(
      {.symbols = 8, .width = 16, .layers = 2}, [](const auto& in) {
        const auto x = in + fast_weights(rms_norm(in, "norm1", {}), "mixer",
                                         fw::DeltaRule<float>({.key_size = 8}), {.heads = 2},
                                         fw::L2Normalise());
        return x + feed_forward(rms_norm(x, "norm2", {}), "ffn", {.hidden = 32});
      });
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
    model.backward(trace, dlogits, gradient);
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
