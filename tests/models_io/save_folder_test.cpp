// A model that is written to a folder with another one: afterwards there is one whole model.

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fastweights/models/load.hpp>
#include <fastweights/models/save.hpp>
#include <fastweights/networks/operations.hpp>
#include <iterator>

#include "models_io/folder_files.hpp"
#include "support/error_of.hpp"

namespace {

namespace fs = std::filesystem;
using namespace folder_files;
using fw::models::Checkpoint;
using fw::models::CheckpointError;
using Network = fw::networks::Network<float>;

const std::string index_name = "model.safetensors.index.json";
const std::string first = "model-00001-of-00002.safetensors",
                  second = "model-00002-of-00002.safetensors";

// Two weights, "e" with 10 × 4 numbers and "h.weight" with `outputs` × 4, all of them `number`.
Network model(float number, fw::Index outputs = 10) {
  fw::networks::Builder<float> b;
  const auto x = fw::networks::embedding(b, "e", 10, 4);
  Network network = b.build(fw::networks::linear(x, "h", outputs));
  fw::Random random(1);
  network.initialise(random);
  for (auto& weight : network.weights) weight.value.setConstant(number);
  return network;
}

void write_weights(const fs::path& path, const Network& network, std::vector<std::size_t> which) {
  SafeTensorsWriter file;
  for (const std::size_t i : which) {
    const auto& weight = network.weights[i];
    file.add(weight.name, weight.value);
  }
  file.write(path);
}

// A folder as it was published, with one file or with shards.
class Source : public TemporaryFolder {
 public:
  explicit Source(bool is_sharded, fw::Index outputs = 10) : outputs_(outputs) {
    write_text(*this / "config.json", R"({"model_type": "x"})");
    write_text(*this / "tokenizer.json", "{}");
    const Network network = model(0, outputs);
    if (!is_sharded) {
      write_weights(*this / "model.safetensors", network, {0, 1});
      return;
    }
    write_weights(*this / first, network, {0});
    write_weights(*this / second, network, {1});
    write_text(*this / index_name,
               index_of({{network.weights[0].name, first}, {network.weights[1].name, second}}));
  }
  // A trained model, all of whose weights are `number`.
  void save(float number, const fs::path& to) const {
    fw::models::save_folder(model(number, outputs_), Checkpoint::read(path()), to);
  }

 private:
  fw::Index outputs_;
};

// The number that all weights of the folder have; -1 if there are several.
float number_in(const fs::path& folder) {
  const Checkpoint found = Checkpoint::read(folder);
  std::vector<float> all;
  for (const std::string& name : found.names())
    for (const float x : found.values<float>(name)) all.push_back(x);
  return std::count(all.begin(), all.end(), all.at(0)) == std::ssize(all) ? all[0] : -1;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// A file cannot be longer than `bytes`, as on a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*handler_)(int);
  rlimit old_{};
};

}  // namespace

TEST_CASE("a model takes the place of one in the other layout", "[models][save]") {
  const Source one(false), sharded(true);
  const TemporaryFolder parent;
  const fs::path to = parent / "model";
  const std::vector<std::string> single{"config.json", "model.safetensors", "tokenizer.json"},
      shards{"config.json", first, second, index_name, "tokenizer.json"};
  one.save(1, to);
  CHECK(names_in(to) == single);
  sharded.save(2, to);
  CHECK(names_in(to) == shards);
  CHECK(number_in(to) == 2);
  one.save(3, to);
  CHECK(names_in(to) == single);
  CHECK(number_in(to) == 3);
}

TEST_CASE("a stale index and old shards are removed, other files stay", "[models][save]") {
  const Source sharded(true), one(false);
  for (const Source* source : {&sharded, &one}) {
    const TemporaryFolder to;
    write_text(to / "model.safetensors", "x");
    write_text(to / index_name, R"({"weight_map": {}})");
    for (const char* name : {"model-00003-of-00003.safetensors", "model-1-of-2.safetensors",
                             "adapter.safetensors", "notes.txt"})
      write_text(to / name, "x");
    source->save(1, to.path());
    CHECK(number_in(to.path()) == 1);
    CHECK_FALSE(fs::exists(to / "model-00003-of-00003.safetensors"));
    for (const char* name : {"model-1-of-2.safetensors", "adapter.safetensors", "notes.txt"})
      CHECK(content_of(to / name) == "x");
  }
}

TEST_CASE("links in a folder are replaced, and their targets stay", "[models][save]") {
  const Source sharded(true), one(false);
  for (const Source* source : {&sharded, &one}) {
    const TemporaryFolder to, outside;
    write_text(outside / "victim", "precious");
    for (const std::string& name : {std::string("config.json"), std::string("model.safetensors"),
                                    first, index_name, std::string("tokenizer.json")})
      fs::create_symlink(outside / "victim", to / name);
    source->save(1, to.path());
    CHECK(number_in(to.path()) == 1);
    CHECK(content_of(outside / "victim") == "precious");
    for (const std::string& name : names_in(to.path())) CHECK_FALSE(fs::is_symlink(to / name));
  }
}

TEST_CASE("a save that finds no room leaves the old model", "[models][save]") {
  // The second shard is the larger one: the first is written, the second is not.
  const Source sharded(true, 400), one(false, 400);
  for (const Source* source : {&sharded, &one}) {
    const TemporaryFolder to;
    source->save(1, to.path());
    write_text(*source / "config.json", R"({"model_type": "another"})");
    const auto names = names_in(to.path());
    for (const rlim_t bytes : {1, 30, 300, 1000, 4000}) {
      INFO(bytes);
      std::string message;
      {
        const FullDisk full(bytes);
        message = error_of<fw::io::SafeTensorsError>([&] { source->save(2, to.path()); });
      }
      CHECK_THAT(message, ContainsSubstring("cannot be written: File too large"));
      CHECK(number_in(to.path()) == 1);
      CHECK(content_of(to / "config.json") == R"({"model_type": "x"})");
      CHECK(names_in(to.path()) == names);
    }
    source->save(3, to.path());
    CHECK(number_in(to.path()) == 3);
    CHECK(content_of(to / "config.json") == R"({"model_type": "another"})");
  }
}

TEST_CASE("a folder that cannot be written is refused before anything is", "[models][save]") {
  const Source source(true);
  const Checkpoint checkpoint = Checkpoint::read(source.path());
  const TemporaryFolder to;
  for (const std::string& name :
       {std::string("config.json"), second, index_name, std::string("model.safetensors"),
        std::string("model-00007-of-00009.safetensors")}) {
    fs::create_directory(to / name);
    const std::string expected = (to / name).string() + ": is no regular file";
    check_error<CheckpointError>([&] { fw::models::check_output(checkpoint, to.path()); },
                                 {expected});
    check_error<CheckpointError>([&] { source.save(1, to.path()); }, {expected});
    CHECK(to.entries() == std::vector<std::string>{name});
    fs::remove(to / name);
  }
  REQUIRE(mkfifo((to / "tokenizer.json").c_str(), 0600) == 0);
  check_error<CheckpointError>([&] { source.save(1, to.path()); }, {"tokenizer.json"});
  write_text(to / "file", "x");
  for (const fs::path& path : {to / "file", to / "file/x", fs::path()})
    check_error<fw::io::SafeTensorsError>([&] { source.save(1, path); },
                                          {path.string() + ": cannot be written"});
}

TEST_CASE("the source is refused under each of its names", "[models][save]") {
  const Source source(false);
  const Checkpoint checkpoint = Checkpoint::read(source.path());
  const TemporaryFolder other;
  fs::create_directory_symlink(source.path(), other / "link");
  const auto bytes = content_of(source / "model.safetensors");
  for (const fs::path& path : {source.path(), source / ".",
                               source.path() / ".." / source.path().filename(), other / "link"}) {
    const std::string expected = path.string() + ": is the source, expected another folder";
    check_error<CheckpointError>([&] { fw::models::check_output(checkpoint, path); }, {expected});
    check_error<CheckpointError>([&] { source.save(1, path); }, {expected});
  }
  CHECK(content_of(source / "model.safetensors") == bytes);
  CHECK_NOTHROW(fw::models::check_output(checkpoint, other.path()));
  CHECK_NOTHROW(fw::models::check_output(checkpoint, other / "new"));
  CHECK_FALSE(fs::exists(other / "new"));
}
