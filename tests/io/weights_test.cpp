#include <fastweights/io/weights.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/fast_weight_memory.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>
#include <filesystem>

#include "data_folder.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/pytorch_network.hpp"
#include "support/saves_its_state.hpp"
#include "support/temporary_folder.hpp"

namespace {

using fw::Index;
using fw::io::SafeTensors;
using fw::io::SafeTensorsError;
using fw::io::SafeTensorsWriter;

std::string data(const std::string& name) {
  return (std::filesystem::path(FASTWEIGHTS_REFERENCE_DIR) / name).string();
}

using Network = PyTorchNetwork;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

SafeTensors written(const SafeTensorsWriter& writer) { return SafeTensors::parse(writer.bytes()); }

TEST_CASE("weights from PyTorch load by name and compute what PyTorch computed", "[weights]") {
  CHECK(pytorch_error(SafeTensors::read(data("pytorch_linear.safetensors"))) <= 1e-6f);
}

TEST_CASE("save then load is the identity for a model", "[weights]") {
  Network saved, loaded;
  fw::Random random(1);
  fw::initialise(saved, random);
  SafeTensorsWriter writer;
  fw::io::add_parameters(writer, saved, "net");
  writer.add("other", 1.0f);  // outside the prefix
  fw::io::load_parameters(loaded, written(writer), "net");
  int parameters = 0;
  fw::for_each_parameter(
      [&](const std::string& path, const auto& a, const auto& b) {
        INFO(path);
        CHECK(a == b);
        ++parameters;
      },
      saved, loaded);
  CHECK(parameters == 6);
}

TEST_CASE("a model's parameters are saved to a file and loaded from it", "[weights]") {
  Network saved, loaded;
  fw::Random random(1);
  fw::initialise(saved, random);
  const TemporaryFolder folder;
  const auto path = folder / "model";
  fw::io::save(saved, path);
  fw::io::load(loaded, path);
  fw::for_each_parameter([](const std::string&, const auto& a, const auto& b) { CHECK(a == b); },
                         saved, loaded);
}

TEST_CASE("a model's parameters load from bytes in memory, at any address", "[weights]") {
  Network saved, loaded;
  fw::Random random(1);
  fw::initialise(saved, random);
  SafeTensorsWriter writer;
  fw::io::add_parameters(writer, saved);
  std::vector<std::byte> bytes = writer.bytes();
  bytes.insert(bytes.begin(), std::byte{});  // so that no tensor is aligned
  const auto file = std::span<const std::byte>(bytes).subspan(1);
  fw::io::load(loaded, file);
  fw::for_each_parameter([](const std::string&, const auto& a, const auto& b) { CHECK(a == b); },
                         saved, loaded);
  CHECK(contains(
      error_of<SafeTensorsError>([&] { fw::io::load(loaded, file.first(file.size() - 1)); }),
      "safetensors: "));
}

struct Parts {
  Eigen::VectorXf weight = Eigen::VectorXf::Ones(2), single = Eigen::VectorXf::Ones(1), empty;
  std::int64_t count = 3;
  static constexpr auto names = fw::names("weight", "single", "empty", "count");
};

TEST_CASE("a file of parameters has the arrays with entries, a file of a state everything",
          "[weights]") {
  SafeTensorsWriter parameters, state;
  fw::io::add_parameters(parameters, Parts());
  fw::io::add_state(state, Parts());
  CHECK(written(parameters).names() == std::vector<std::string>{"single", "weight"});
  CHECK(written(state).names() == std::vector<std::string>{"count", "empty", "single", "weight"});
}

TEST_CASE("loading names a tensor that is missing, unexpected or misshapen, and changes nothing",
          "[weights]") {
  Network net;
  fw::Random drawn(3);
  fw::initialise(net, drawn);
  const auto before = net;
  const auto load = [&](const SafeTensorsWriter& writer) {
    return error_of<SafeTensorsError>([&] { fw::io::load_parameters(net, written(writer)); });
  };
  const auto all_except = [&](const std::string& left_out) {
    SafeTensorsWriter writer;
    Network other;
    fw::Random random(2);
    fw::initialise(other, random);
    const auto add = [&](const std::string& path, const auto& p) {
      if (path != left_out) writer.add(path, p);
    };
    add("norm.weight", other.norm.weight);
    add("norm.bias", other.norm.bias);
    for (const auto& each : other.ffn.weights)
      if (each.axes.size() > 1)
        add("ffn." + each.name, each.value);
      else
        add("ffn." + each.name, Eigen::VectorXf(each.value));
    return writer;
  };
  CHECK(contains(load(all_except("ffn.up.bias")), "ffn.up.bias"));

  auto extra = all_except("");
  extra.add("ffn.gate.weight", Eigen::MatrixXf::Zero(2, 2).eval());
  CHECK(contains(load(extra), "ffn.gate.weight"));

  auto misshapen = all_except("ffn.down.weight");
  misshapen.add("ffn.down.weight", Eigen::MatrixXf::Zero(24, 12).eval());
  const auto message = load(misshapen);
  CHECK(contains(message, "ffn.down.weight"));
  CHECK(contains(message, "[12, 24]"));
  CHECK(contains(message, "[24, 12]"));

  auto renamed = all_except("norm.weight");
  renamed.add("norm.scale", Eigen::VectorXf::Ones(12).eval());
  CHECK(contains(load(renamed), "norm.weight"));
  CHECK(contains(
      load(renamed),
      "\"norm.weight\": not in the file, which has \"norm.scale\", and that is not expected"));

  fw::for_each_parameter([](const std::string&, const auto& a, const auto& b) { CHECK(a == b); },
                         net, before);
}

// Memories of dynamic size are in laws/files_test.cpp.
TEST_CASE("save then load is the identity for states of fixed size, and of 16 bits", "[weights]") {
  saves_its_state(fw::LinearAttention<float, 5, 3, fw::AttentionNormaliser<float>>());
  using Delta = fw::DeltaRule<float>;
  saves_its_state(fw::Deferred<Delta, 5, Eigen::half>(Delta({.key_size = 3, .value_size = 4})));
}

struct Numbers {
  Eigen::Matrix<std::int64_t, Eigen::Dynamic, 1> ids;
  double rate;
  std::int64_t count;
  static constexpr auto names = fw::names("ids", "rate", "count");
};

TEST_CASE("a count has a largest value, entries of an array and other numbers have none",
          "[weights]") {
  constexpr std::int64_t large = fw::max_count + 1;
  const auto load = [](const Numbers& saved) {
    SafeTensorsWriter writer;
    fw::io::add_state(writer, saved);
    Numbers loaded{saved.ids * 0, 0, 0};
    fw::io::load_state(loaded, written(writer));
    return loaded;
  };
  Numbers saved{Eigen::Matrix<std::int64_t, Eigen::Dynamic, 1>::Constant(2, large), 1e300,
                fw::max_count};
  const Numbers loaded = load(saved);
  CHECK(loaded.ids == saved.ids);
  CHECK(loaded.rate == saved.rate);
  CHECK(loaded.count == saved.count);
  saved.count = large;
  CHECK(contains(error_of<SafeTensorsError>([&] { load(saved); }),
                 "\"count\": expected a count of at most"));
}

TEST_CASE("a negative counter is refused by name", "[weights]") {
  const fw::KeyValueCache<double> cache({.key_size = 4, .value_size = 3}, {5});
  auto state = fw::initial_state(cache);
  state.length = -5;
  SafeTensorsWriter writer;
  fw::io::add_state(writer, state);
  auto loaded = fw::initial_state(cache);
  CHECK(error_of<SafeTensorsError>([&] { fw::io::load_state(loaded, written(writer)); }) ==
        "safetensors: tensor \"length\": expected a count, is -5");
  CHECK(loaded.length == 0);
}

TEST_CASE("a state of another size is refused by name", "[weights]") {
  fw::Random random(4);
  const fw::DeltaRule<double> small({.key_size = 3}), large({.key_size = 4});
  SafeTensorsWriter writer;
  fw::io::add_state(writer, fw::initial_state(small));
  auto state = fw::initial_state(large);
  const auto message =
      error_of<SafeTensorsError>([&] { fw::io::load_state(state, written(writer)); });
  CHECK(contains(message, "W"));
  CHECK(contains(message, "[4, 4]"));
  CHECK(state.W.rows() == 4);
}

}  // namespace
