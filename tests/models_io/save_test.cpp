// A model that is loaded and written again.

#include <fastweights/io/safetensors.hpp>
#include <fastweights/models/load.hpp>
#include <fastweights/models/save.hpp>

#include "data_folder.hpp"
#include "models_io/built.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;
using fw::models::Checkpoint;
using fw::models::CheckpointError;

const fs::path source = FASTWEIGHTS_REFERENCE_DIR "/models/qwen3_5_folder";

fw::networks::Network<float> loaded(const Checkpoint& folder) {
  auto network = built(folder.config(), {.context = 8});
  fw::models::load_weights(network, folder);
  return network;
}

}  // namespace

TEST_CASE("a folder is written back with the same bytes in all tensors", "[models][save]") {
  const TemporaryFolder parent;
  const fs::path to = parent / "copy";
  const Checkpoint folder = Checkpoint::read(source);
  fw::models::save_folder(loaded(folder), folder, to);
  std::size_t tensors = 0;
  folder.for_each_file([&](const std::string& name, const fw::io::SafeTensors& file) {
    const auto copy = fw::io::SafeTensors::read(to / name);
    REQUIRE(copy.names() == file.names());
    CHECK(copy.metadata().contains("format"));
    for (const std::string& each : file.names()) {
      const auto a = file.data(each), b = copy.data(each);
      CHECK(copy.dtype(each) == file.dtype(each));
      CHECK(copy.shape(each) == file.shape(each));
      CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
      ++tensors;
    }
  });
  CHECK(tensors == 55);
  CHECK(fs::exists(to / "tokenizer.json"));
  CHECK(Checkpoint::read(to).names() == folder.names());
}

TEST_CASE("changed weights are written, and can be read again", "[models][save]") {
  const TemporaryFolder parent;
  const fs::path to = parent / "copy";
  const Checkpoint folder = Checkpoint::read(source);
  auto network = loaded(folder);
  network.weights[3].value *= 2;  // exact in any type of the file
  fw::models::save_folder(network, folder, to);
  const auto again = loaded(Checkpoint::read(to));
  for (std::size_t i = 0; i < network.weights.size(); ++i)
    CHECK(again.weights[i].value == network.weights[i].value);
}

TEST_CASE("a weight that the file's type cannot hold is refused before anything is written",
          "[models][save]") {
  const TemporaryFolder parent;
  const Checkpoint folder = Checkpoint::read(source);
  auto network = loaded(folder);
  network.weights[3].value(0, 0) = 3.4e38f;  // rounds to infinity in bfloat16
  CHECK_THROWS_WITH(
      fw::models::save_folder(network, folder, parent / "copy"),
      Catch::Matchers::ContainsSubstring(network.weights[3].name + " has the entry 3.4"));
  CHECK_FALSE(fs::exists(parent / "copy"));
}

TEST_CASE("weights in other formats are not copied, other files are", "[models][save]") {
  const TemporaryFolder parent;
  fs::copy(source, parent / "from");
  for (const char* name : {"pytorch_model.bin", "model.gguf", "vocab.txt"})
    std::ofstream(parent / "from" / name) << "x";
  const Checkpoint folder = Checkpoint::read(parent / "from");
  fw::models::save_folder(loaded(folder), folder, parent / "copy");
  CHECK(fs::exists(parent / "copy" / "vocab.txt"));
  CHECK_FALSE(fs::exists(parent / "copy" / "pytorch_model.bin"));
  CHECK_FALSE(fs::exists(parent / "copy" / "model.gguf"));
}

TEST_CASE("a folder is not written over itself, nor from quantised weights", "[models][save]") {
  const TemporaryFolder parent;
  const fs::path to = parent / "copy";
  const Checkpoint folder = Checkpoint::read(source);
  auto network = loaded(folder);
  CHECK_THROWS_AS(fw::models::save_folder(network, folder, source), CheckpointError);
  network.quantise(fw::networks::WeightType::int8);
  CHECK_THROWS_AS(fw::models::save_folder(network, folder, to), std::invalid_argument);
}
