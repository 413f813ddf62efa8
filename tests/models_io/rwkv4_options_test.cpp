// RWKV-4: options of config.json that it reads, and those that it refuses.

#include <fastweights/layers/feed_forward.hpp>
#include <fastweights/layers/rwkv4.hpp>

#include "models_io/built.hpp"
#include "models_io/model_options.hpp"
#include "models_io/seven_symbols.hpp"

namespace {

using namespace fw::models;
using namespace model_options;
using folder_files::ContainsSubstring;

const json sizes{
    {"vocab_size", 7}, {"hidden_size", 12}, {"num_hidden_layers", 3}, {"intermediate_size", 30}};

Model rwkv4_of(const json& config) { return built_as("rwkv", config); }

TEST_CASE("RWKV-4 reads its options, and refuses what it does not support", "[models_io]") {
  const std::string block = "rwkv.blocks.0.";
  const json usual = with(sizes, "intermediate_size", nullptr);
  CHECK(rows(rwkv4_of(usual), block + "feed_forward.key.weight") == 48);
  CHECK(rows(rwkv4_of(sizes), block + "feed_forward.key.weight") == 30);
  CHECK(rows(rwkv4_of(with(sizes, "attention_hidden_size", 8)), block + "attention.time_decay") ==
        8);
  CHECK(rows(rwkv4_of(sizes), "head.weight") == 7);
  CHECK(rows(rwkv4_of(with(sizes, "tie_word_embeddings", true)), "head.weight") == 0);
  for (const char* name : {"attention_hidden_size", "intermediate_size", "num_hidden_layers"})
    refused(rwkv4_of, sizes, name, no_sizes);
  refused(rwkv4_of, sizes, "rescale_every", {1.5, "6"});
  refused(rwkv4_of, with(sizes, "num_hidden_layers", 100000), "attention_hidden_size", {16384});
  CHECK_THROWS_WITH(rwkv4_of(with(with(sizes, "rescale_every", 1), "num_hidden_layers", 401)),
                    ContainsSubstring("rescale_every"));
}

// RWKV-4 as it is published: x is halved behind every second layer, and what is added to it
// divided.
Model halved(double epsilon) {
  using namespace fw::networks;
  const NormOptions norm{.epsilon = epsilon, .bias = true};
  Builder<float> net;
  net.enter("rwkv");
  Value<float> x = embedding(net, "embeddings", 7, 12);
  for (int l = 0; l < 5; ++l) {
    x = module("blocks." + std::to_string(l), x, [&](const Value<float>& in) {
      const double factor = std::exp2(-double(l / 2));
      const Value<float> before = l == 0 ? layer_norm(in, "pre_ln", norm) : in;
      const Value<float> h =
          before + factor * rwkv4_time_mix(layer_norm(before, "ln1", norm), "attention", 12);
      return h + factor * rwkv4_channel_mix(layer_norm(h, "ln2", norm), "feed_forward", 48);
    });
    if (l % 2 == 1) x = 0.5 * x;
  }
  x = layer_norm(x, "ln_out", {.epsilon = 1e-5, .bias = true});
  net.leave();
  return net.build(linear(x, "head", 7));
}

TEST_CASE("RWKV-4 computes what halving x every rescale_every layers gives", "[models_io]") {
  json config{{"vocab_size", 7},
              {"hidden_size", 12},
              {"num_hidden_layers", 5},
              {"layer_norm_epsilon", 0.5}};
  const auto logits_with = [&](const json& every) {
    return seven_symbols::logits(
        seven_symbols::drawn(rwkv4_of(with(config, "rescale_every", every))));
  };
  const Eigen::MatrixXf expected = seven_symbols::logits(seven_symbols::drawn(halved(0.5)));
  const float largest = expected.cwiseAbs().maxCoeff();
  CHECK((logits_with(2) - expected).cwiseAbs().maxCoeff() <= 1e-5f * largest);
  CHECK((logits_with(0) - expected).cwiseAbs().maxCoeff() >= 1e-2f * largest);
  CHECK(logits_with(-3) == logits_with(0));
  CHECK(logits_with(nullptr) == logits_with(6));
}

}  // namespace
