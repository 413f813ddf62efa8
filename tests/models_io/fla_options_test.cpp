// The single layers of flash-linear-attention: options and sizes that they refuse.

#include <fastweights/models/fla/gla.hpp>
#include <fastweights/models/fla/gsa.hpp>
#include <fastweights/models/fla/hgrn2.hpp>
#include <fastweights/models/fla/retnet.hpp>

#include "models_io/folder_files.hpp"

namespace {

using namespace folder_files;
using namespace fw::models;
using nlohmann::json;
using Layer = fw::networks::Network<float> (*)(const Config&);

constexpr Layer layers[] = {fla::gla<float>, fla::gsa<float>, fla::hgrn2<float>,
                            fla::retnet<float>};

json small() { return {{"hidden_size", 12}, {"num_heads", 2}, {"expand_ratio", 6}}; }

// The error names the option.
void refused(Layer layer, const std::string& option, const json& value) {
  json with = small();
  with[option] = value;
  INFO(option << ": " << value);
  check_error<std::invalid_argument>([&] { layer(Config(with)); }, {option});
}
void refused(const std::string& option, const std::vector<json>& values,
             const std::vector<Layer>& some = {std::begin(layers), std::end(layers)}) {
  for (const json& value : values)
    for (const Layer layer : some) refused(layer, option, value);
}

const std::vector<json> no_sizes{0, -1, 1.5, 4294967296.0, "12", true, json::array({12})};
const std::vector<Layer> with_heads{fla::gla<float>, fla::gsa<float>, fla::retnet<float>};
const std::vector<Layer> gated{fla::gla<float>, fla::retnet<float>};

TEST_CASE("fla layers of small sizes are built", "[models_io]") {
  for (const Layer layer : layers) CHECK(layer(Config(small())).outputs() == 12);
}

TEST_CASE("fla layers refuse what are no sizes", "[models_io]") {
  refused("hidden_size", no_sizes);
  refused("num_heads", no_sizes, with_heads);
  refused("num_kv_heads", no_sizes, with_heads);
  refused("expand_k", {0, -1, 1e30, "1", 0.01}, with_heads);
  refused("expand_v", {0, -1, 1e30, "1", 0.01}, with_heads);
  refused("num_slots", no_sizes, {fla::gsa<float>});
  refused("gate_low_rank_dim", no_sizes, {fla::gla<float>});
  refused("expand_ratio", no_sizes, {fla::hgrn2<float>});
}

TEST_CASE("fla layers refuse sizes that do not fit each other", "[models_io]") {
  refused("num_kv_heads", {3}, with_heads);
  refused("num_heads", {5, 24}, with_heads);
  refused("expand_v", {0.75}, with_heads);  // nine rows for two heads
  refused("expand_v", {2}, {fla::gsa<float>});
  refused("expand_k", {0.5, 1.5}, {fla::retnet<float>});  // odd heads do not rotate
  refused("expand_ratio", {13}, {fla::hgrn2<float>});
  refused("num_heads", {5}, {[](const Config& c) {
            json with = small();
            with["expand_ratio"] = nullptr;
            with["num_heads"] = c.size("num_heads");
            return fla::hgrn2<float>(Config(with));
          }});
}

TEST_CASE("fla layers refuse options that they do not have", "[models_io]") {
  refused("mode", {"spectral", 5});
  refused("feature_map", {"hedgehog", 5}, with_heads);
  refused("gate_fn", {"gelu", "mish", 5}, gated);
  refused("use_output_gate", {"yes"}, gated);
  refused("use_short_conv", {1});
  refused("norm_eps", {"small"});
  refused("elementwise_affine", {"yes"});
  refused("gate_logit_normalizer", {0, -16, "x"}, {fla::gla<float>, fla::gsa<float>});
  refused("clamp_min", {0.5, "x"}, {fla::gla<float>});
  refused("scale", {"x"}, {fla::gsa<float>});
}

TEST_CASE("the lower bound of HGRN2", "[models_io]") {
  const auto layer = [](const json& bound, const json& index) {
    json with = small();
    with["lower_bound"] = bound;
    with["layer_idx"] = index;
    return fla::hgrn2<float>(Config(with));
  };
  CHECK_NOTHROW(layer(0.5, 1));
  CHECK_NOTHROW(layer(std::vector<double>(12, 0.5), 1));
  CHECK_NOTHROW(layer(2, 0));  // is not used
  const auto refused_bound = [&](const json& bound) {
    check_error<std::invalid_argument>([&] { layer(bound, 1); }, {"lower_bound"});
  };
  refused_bound(-0.1);
  refused_bound(1.1);
  refused_bound("half");
  refused_bound(std::vector<double>(11, 0.5));
  refused_bound(json::array({0.5, "x"}));
  check_error<std::invalid_argument>([&] { layer(0.5, -1); }, {"layer_idx"});
}

// Sizes that are whole numbers, but of absurd networks, cost nothing.
TEST_CASE("fla layers refuse absurd sizes before they take memory", "[models_io]") {
  for (const char* option :
       {"hidden_size", "expand_k", "expand_v", "num_slots", "gate_low_rank_dim"})
    for (const Layer layer : layers) {
      json with = small();
      with[option] = 2147483648;
      with["expand_ratio"] = 1073741824;
      INFO(option);
      const bool is_used = layer == fla::gsa<float>   ? option != std::string("gate_low_rank_dim")
                           : layer == fla::gla<float> ? option != std::string("num_slots")
                                                      : option[0] == 'h';
      if (is_used) CHECK_THROWS_AS(layer(Config(with)), std::invalid_argument);
    }
}

}  // namespace
