// The options of rotary positions, wherever a config.json has them.

#include <fastweights/models/bailing_hybrid.hpp>
#include <fastweights/models/bamba.hpp>
#include <fastweights/models/falcon_h1.hpp>
#include <fastweights/models/granite_hybrid.hpp>
#include <fastweights/models/olmo_hybrid.hpp>

#include "models_io/built.hpp"
#include "models_io/folder_files.hpp"
#include "models_io/seven_symbols.hpp"

namespace {

using namespace folder_files;
using fw::models::Config;
using fw::models::ModelOptions;
using fw::models::RopeOptions;
using seven_symbols::drawn;
using seven_symbols::logits;
using Json = nlohmann::json;

const char* const places[] = {"rope_parameters", "rope_scaling", ""};

// The config with `options` in a place.
Config with(Json config, const std::string& place, const Json& options) {
  if (place.empty())
    config.update(options);
  else
    config[place] = options;
  return Config(config, "file");
}
void refused(const Config& c, const std::vector<std::string>& parts) {
  check_error<std::invalid_argument>([&] { RopeOptions(c).theta_of_whole_heads(10000); }, parts);
}

TEST_CASE("every option of rotary positions is read in each of three places", "[models_io]") {
  for (const std::string place : places) {
    const Config c = with({}, place, {{"rope_theta", 777.0}, {"partial_rotary_factor", 0.5}});
    CHECK(RopeOptions(c).theta(10000) == 777);
    CHECK(RopeOptions(c).part(0.25) == 0.5);
    const Config none = with({{"rope_scaling", nullptr}}, place, {{"rope_type", "default"}});
    CHECK(RopeOptions(none).theta(10000) == 10000);
    CHECK(RopeOptions(none).part(0.25) == 0.25);
  }
  for (const char* place : {"rope_parameters", "rope_scaling"}) {
    const Json outside{{"rope_theta", 777.0}, {"partial_rotary_factor", 0.5}};
    CHECK(RopeOptions(with(outside, place, {{"rope_theta", 5.0}})).theta(10000) == 5);
    CHECK(RopeOptions(with(outside, place, {{"rope_theta", 5.0}})).part(0.25) == 0.5);
    CHECK(RopeOptions(with(outside, place, Json::object())).theta(10000) == 777);
  }
  const Json both{{"rope_theta", 777.0}};
  CHECK(RopeOptions(with({{"rope_scaling", both}}, "rope_parameters", both)).theta(1) == 777);
}

TEST_CASE("options of rotary positions that are refused are named", "[models_io]") {
  for (const std::string place : places) {
    const std::string where = place.empty() ? "file: " : "file: " + place + ": ";
    refused(with({}, place, {{"rope_type", "yarn"}}), {where + "rope_type", "yarn"});
    refused(with({}, place, {{"rope_theta", 0.5}}), {where + "rope_theta", "at least 1"});
    refused(with({}, place, {{"rope_theta", 1e300}}), {where + "rope_theta", "at most"});
    refused(with({}, place, {{"rope_theta", nullptr}}), {where + "rope_theta", "null"});
    refused(with({}, place, {{"partial_rotary_factor", 1.5}}), {where + "partial_rotary_factor"});
    refused(with({}, place, {{"partial_rotary_factor", 0.5}}),
            {where + "partial_rotary_factor", "supported is 1", "0.5"});
  }
  for (const char* place : {"rope_parameters", "rope_scaling"}) {
    const Json of_layer{{"rope_theta", 777.0}};
    refused(with({}, place, {{"full_attention", of_layer}}), {place, "full_attention"});
    refused(with({}, place, {{"type", "linear"}}), {place, "type", "linear"});
    refused(with({}, place, 5), {place, "expected an object"});
  }
  refused(with({{"rope_scaling", {{"rope_theta", 5.0}}}}, "rope_parameters", {{"rope_theta", 6.0}}),
          {"file: rope_scaling", "rope_parameters"});
}

const Json sizes{{"hidden_size", 8}, {"num_attention_heads", 2}, {"head_dim", 4}};

TEST_CASE("all architectures read the options of rotary positions alike", "[models_io]") {
  using namespace fw::models;
  const Json half{{"rope_theta", 777.0}, {"partial_rotary_factor", 0.5}};
  for (const std::string place : places) {
    const Config c = with(sizes, place, {{"rope_theta", 777.0}}), part = with(sizes, place, half);
    CHECK(bamba_attention_options(c, {}).theta == 777);
    CHECK(bamba_attention_options(part, {}).rotated == 0.5);
    CHECK(falcon_attention_options(c, {}).theta == 777);
    CHECK(olmo_rope_theta(part) == 777);
    Json granite = sizes;
    granite["position_embedding_type"] = "rope";
    CHECK(granite_attention_options(with(granite, place, {{"rope_theta", 777.0}}), {}).theta ==
          777);
    const std::vector<std::string> parts{"partial_rotary_factor", "supported is 1"};
    check_error<std::invalid_argument>([&] { falcon_attention_options(part, {}); }, parts);
    check_error<std::invalid_argument>(
        [&] { granite_attention_options(with(granite, place, half), {}); }, parts);
    const Json latent{{"num_attention_heads", 2},
                      {"kv_lora_rank", 3},
                      {"qk_nope_head_dim", 2},
                      {"qk_rope_head_dim", 2},
                      {"v_head_dim", 2}};
    CHECK(bailing_latent_options(with(latent, place, half), {}).theta == 777);
  }
  const Json quarter{{"partial_rotary_factor", 0.25}};
  CHECK(bamba_attention_options(with(sizes, "rope_scaling", quarter), {}).rotated == 0.25);
  check_error<std::invalid_argument>([&] { bamba_attention_options(with(sizes, "", quarter), {}); },
                                     {"file: partial_rotary_factor", "rope_parameters only"});
  for (const std::string place : places)
    CHECK(olmo_rope_theta(with(sizes, place, {{"rope_theta", nullptr}})) == 0);
}

TEST_CASE("a model with its rotary options elsewhere gives the same logits", "[models_io]") {
  Json config = sizes;
  config.update({{"model_type", "qwen3_5_text"},
                 {"vocab_size", 7},
                 {"num_key_value_heads", 1},
                 {"num_hidden_layers", 1},
                 {"layer_types", {"full_attention"}},
                 {"intermediate_size", 6}});
  const auto model = [&](const std::string& place, const Json& options) {
    return drawn(built(with(config, place, options), {.context = 5}));
  };
  const Json options{{"rope_theta", 3.0}, {"partial_rotary_factor", 1.0}};
  const Eigen::MatrixXf expected = logits(model("rope_parameters", options));
  for (const std::string place : places) CHECK(logits(model(place, options)) == expected);
  for (const Json& one : {Json{{"rope_theta", 3.0}}, Json{{"partial_rotary_factor", 1.0}}})
    CHECK((logits(model("rope_scaling", one)) - expected).norm() > 1e-3f * expected.norm());
}

}  // namespace
