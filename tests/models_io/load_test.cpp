// Weights from files and folders that fit a network, or do not.

#include <fastweights/models/checkpoint.hpp>
#include <fastweights/models/load.hpp>
#include <fastweights/networks/operations.hpp>

#include "models_io/folder_files.hpp"

namespace {

using namespace folder_files;
using namespace fw::networks;
using fw::Index;
using fw::io::SafeTensors;
using fw::io::SafeTensorsError;
using fw::io::Shape;
using fw::models::Checkpoint;
using fw::models::load_weights;

// Weights of three shapes: map.weight [2, 3], map.bias [2], conv.weight [2, 4].
template <class S> Network<S> network() {
  Builder<S> builder;
  return builder.build(convolution(linear(builder.input(3), "map", 2, true), "conv", 4));
}

template <class T> std::vector<T> numbers(std::size_t n) {
  std::vector<T> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = static_cast<T>(float(i) / 4);
  return all;
}

using Shapes = std::map<std::string, Shape>;
const Shapes right_shapes = {{"map.weight", {2, 3}}, {"map.bias", {2}}, {"conv.weight", {2, 1, 4}}};

template <class T = float> SafeTensorsWriter file_of(const Shapes& shapes) {
  SafeTensorsWriter writer;
  for (const auto& [name, shape] : shapes) {
    std::size_t n = 1;
    for (const Index axis : shape) n *= std::size_t(axis);
    writer.add(name, shape, numbers<T>(n));
  }
  return writer;
}

SafeTensors parsed(const SafeTensorsWriter& writer) {
  return SafeTensors::parse(writer.bytes(), "weights");
}

// The network keeps its weights, whatever they are.
template <class File>
void refused(const File& file, std::vector<std::string> parts,
             const fw::models::LoadOptions& options = {}) {
  Network<float> given = network<float>();
  fw::Random random(1);
  fw::initialise(given, random);
  const Network<float> before = given;
  check_error<SafeTensorsError>([&] { load_weights(given, file, options); }, parts);
  for (std::size_t i = 0; i < given.weights.size(); ++i) {
    CHECK(given.weights[i].value == before.weights[i].value);
    CHECK(given.weights[i].quantised == nullptr);
  }
}

template <class T, class S> void check_loads() {
  Network<S> given = network<S>();
  load_weights(given, parsed(file_of<T>(right_shapes)));
  for (const Weight<S>& weight : given.weights) {
    const auto n = static_cast<std::size_t>(weight.value.size());
    REQUIRE(weight.value.rows() == weight.rows());
    REQUIRE(weight.value.cols() == weight.cols());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i)
      wrong += weight.value(Index(i) / weight.cols(), Index(i) % weight.cols()) != S(float(i) / 4);
    CHECK(wrong == 0);
  }
}

TEST_CASE("weights load by name, row after row, from any type of float", "[models_io]") {
  check_loads<float, float>();
  check_loads<float, double>();
  check_loads<double, float>();
  check_loads<double, double>();
  check_loads<Eigen::half, float>();
  check_loads<Eigen::bfloat16, float>();
  check_loads<Eigen::bfloat16, double>();
}

TEST_CASE("axes of length 1 do not count", "[models_io]") {
  Shapes shapes = right_shapes;
  shapes["map.bias"] = {1, 2, 1};
  shapes["conv.weight"] = {2, 4};
  Network<float> given = network<float>();
  CHECK_NOTHROW(load_weights(given, parsed(file_of(shapes))));
  shapes["map.weight"] = {3, 2};
  refused(parsed(file_of(shapes)), {"map.weight: has shape [3, 2], expected [2, 3]"});
}

TEST_CASE("weights load from a folder", "[models_io]") {
  const Folder folder;
  file_of(right_shapes).write(folder / "model.safetensors");
  Network<float> given = network<float>();
  std::vector<std::size_t> calls;
  load_weights(given, Checkpoint::read(folder.path()),
               {.progress = [&](std::size_t i, std::size_t n) {
                 CHECK(n == 3);
                 calls.push_back(i);
               }});
  CHECK(calls == std::vector<std::size_t>{0, 1, 2});
  CHECK(given.weights[0].value(1, 0) == 0.75f);
}

TEST_CASE("all tensors that do not fit are listed at once", "[models_io]") {
  const Folder folder;
  const Shapes shapes = {
      {"map.weight", {2, 4}}, {"map.bias", {3}}, {"extra.one", {1}}, {"extra.two", {5, 5}}};
  const std::vector<std::string> problems{"\n  map.weight: has shape [2, 4], expected [2, 3]",
                                          "\n  map.bias: has shape [3], expected [2]",
                                          "\n  conv.weight: is missing",
                                          "\n  extra.one: is in the file, but not expected",
                                          "\n  extra.two: is in the file, but not expected"};
  std::vector<std::string> parts = problems;
  parts.push_back("weights: ");
  refused(parsed(file_of(shapes)), parts);
  file_of(shapes).write(folder / "model.safetensors");
  parts = problems;
  parts.push_back(folder.path().string());
  refused(Checkpoint::read(folder.path()), parts);
  refused(parsed(SafeTensorsWriter()), {"map.weight: is missing", "map.bias: is missing"});
}

TEST_CASE("of many tensors that do not fit, the first are listed", "[models_io]") {
  Shapes shapes = right_shapes;
  for (int i = 10; i < 40; ++i) shapes["extra." + std::to_string(i)] = {1};
  shapes["extra." + std::string(3000, 'x')] = {1};
  refused(parsed(file_of(shapes)), {"extra.10", "extra.29", "\n  and 11 more"});
  Network<float> given = network<float>();
  CHECK_NOTHROW(load_weights(
      given, parsed(file_of(shapes)),
      {.is_ignored = [](const std::string& name) { return name.starts_with("extra."); }}));
}

TEST_CASE("an ignored tensor that the network has is loaded and checked", "[models_io]") {
  Shapes shapes = right_shapes;
  shapes.erase("map.bias");
  refused(parsed(file_of(shapes)), {"map.bias: is missing"},
          {.is_ignored = [](const std::string&) { return true; }});
}

TEST_CASE("entries that are not finite are refused with file and tensor", "[models_io]") {
  for (const double bad : {double(NAN), double(INFINITY), -double(INFINITY), 1e300}) {
    std::vector<double> entries = numbers<double>(8);
    entries[7] = bad;
    Shapes others = right_shapes;
    others.erase("conv.weight");
    SafeTensorsWriter writer = file_of(others);
    writer.add("conv.weight", {2, 1, 4}, entries);
    refused(parsed(writer), {"weights: ", "conv.weight"});
    for (const WeightType type : {WeightType::same, WeightType::bfloat16, WeightType::int8})
      refused(parsed(writer), {"conv.weight"}, {.weights = type});
    const Folder folder;
    writer.write(folder / "model.safetensors");
    refused(Checkpoint::read(folder.path()),
            {(folder / "model.safetensors").string(), "conv.weight"});
  }
}

TEST_CASE("tensors of another type are refused with file and tensor", "[models_io]") {
  const Folder folder;
  file_of<std::int64_t>(right_shapes).write(folder / "model.safetensors");
  refused(Checkpoint::read(folder.path()),
          {(folder / "model.safetensors").string(), "map.weight", "I64"});
  refused(parsed(file_of<std::int32_t>(right_shapes)), {"weights: ", "map.weight", "I64"});
}

TEST_CASE("a file that becomes shorter after it was opened", "[models_io]") {
  const Folder folder;
  const auto file = folder / "model.safetensors";
  file_of(right_shapes).write(file);
  const Checkpoint checkpoint = Checkpoint::read(folder.path());
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  refused(checkpoint, {file.string(), "shrunk"});
}

TEST_CASE("weights may be quantised as soon as they are loaded", "[models_io]") {
  for (const WeightType type : {WeightType::same, WeightType::bfloat16, WeightType::int8}) {
    Network<float> given = network<float>();
    load_weights(given, parsed(file_of(right_shapes)), {.weights = type});
    for (const Weight<float>& weight : given.weights) {
      const bool is_matrix = weight.name == "map.weight";
      CHECK((weight.quantised != nullptr) == is_matrix);
      CHECK((weight.value.size() == 0) == is_matrix);
    }
    load_weights(given, parsed(file_of(right_shapes)));  // and back
    CHECK(given.weights[0].quantised == nullptr);
    CHECK(given.weights[0].value(1, 0) == 0.75f);
  }
}

}  // namespace
