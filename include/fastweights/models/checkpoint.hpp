#pragma once

#include <algorithm>
#include <array>
#include <fastweights/io/safetensors_reader.hpp>
#include <fastweights/models/config.hpp>
#include <fastweights/models/strict_json.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace fw::inline FASTWEIGHTS_ABI::models {

/// An error of a checkpoint folder. The message names the file and, if there is one, the tensor.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A rule by which names in a folder become those of a model: the first of `replaced` that a name
/// begins with is replaced, and names that begin with one of `ignored` are left out.
struct NameTable {
  /// Prefixes of names, and what takes their place.
  std::vector<std::pair<std::string, std::string>> replaced = {{"model.language_model.", "model."}};
  /// Prefixes of names that are left out of any model; Architectures::is_ignored has those of one.
  std::vector<std::string> ignored = {"mtp.", "model.visual."};
};

/// A model's folder as it is published: config.json, and model.safetensors or the shards that
/// model.safetensors.index.json lists. Only headers are read at first; a tensor is read when it is
/// asked for. No file outside of the folder is opened: an index may name plain files only, and a
/// link may lead out of the folder only from snapshots/REVISION/ to blobs/, as in the cache of
/// Hugging Face.
/// All functions throw CheckpointError, fw::io::SafeTensorsError of one of the files, or
/// std::invalid_argument for an entry of config.json or a file that is no strict JSON.
class Checkpoint {
 public:
  /// Opens a folder and reads the headers of its files.
  static Checkpoint read(const std::filesystem::path& folder, const NameTable& table = {}) {
    return Checkpoint(folder, table);
  }

  /// Its config.json.
  const Config& config() const { return config_; }
  /// The folder that was read.
  const std::filesystem::path& folder() const { return folder_; }

  /// True if there is a tensor of this name.
  bool contains(const std::string& name) const { return tensors_.contains(name); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, place] : tensors_) all.push_back(name);
    return all;
  }
  /// The shape of a tensor.
  io::Shape shape(const std::string& name) const {
    const TensorLocation& place = find(name);
    return shards_[place.shard].shape(place.name);
  }
  /// The type of a tensor's elements.
  io::DType dtype(const std::string& name) const {
    const TensorLocation& place = find(name);
    return shards_[place.shard].dtype(place.name);
  }
  /// A tensor's bytes.
  io::TensorBytes data(const std::string& name) const {
    const TensorLocation& place = find(name);
    return shards_[place.shard].data(place.name);
  }
  /// Reads a tensor, row by row, in the type S.
  template <class S> std::vector<S> values(const std::string& name) const {
    const TensorLocation& place = find(name);
    return shards_[place.shard].template values<S>(place.name);
  }

  /// Calls f(file name, file) for every file of weights.
  template <class F> void for_each_file(const F& f) const {
    for (std::size_t i = 0; i < shards_.size(); ++i) f(files_[i], shards_[i]);
  }
  /// The name that a tensor of a file has here.
  std::string name_of(const std::string& in_file) const {
    for (const auto& [from, to] : table_.replaced)
      if (in_file.starts_with(from)) return to + in_file.substr(from.size());
    return in_file;
  }
  /// The file without which there is no model: the index of the shards, or model.safetensors.
  std::string entry() const { return is_sharded_ ? index : "model.safetensors"; }
  /// The names of all files that are not weights, such as config.json, tokenizer.json and the index
  /// of the shards.
  std::vector<std::string> other_files() const {
    namespace fs = std::filesystem;
    std::vector<std::string> names;
    std::error_code error;
    fs::directory_iterator entry(folder_, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      std::error_code ignored;
      if (!entry->is_regular_file(ignored) || has_weights(name) || is_temporary(name)) continue;
      check_inside(name);
      names.push_back(name);
    }
    if (error) raise(folder_.string() + ": cannot be read: " + error.message());
    return names;
  }

  /// The text that errors begin with.
  std::string origin() const { return folder_.string(); }
  /// Throws SafeTensorsError with the file, the tensor and `what`.
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    const TensorLocation& place = find(name);
    shards_[place.shard].fail(place.name, what);
  }

 private:
  static constexpr const char* index = "model.safetensors.index.json";

  struct TensorLocation {
    std::size_t shard;
    std::string name;  // in the file
  };

  Checkpoint(const std::filesystem::path& folder, const NameTable& table)
      : folder_(folder),
        table_(table),
        config_(Config::parse(text_of("config.json"), path_of("config.json"))),
        is_sharded_(exists(index)) {
    if (is_sharded_ && exists("model.safetensors"))
      fail_file("model.safetensors",
                "stands beside model.safetensors.index.json, expected one of them");
    if (is_sharded_)
      read_shards();
    else
      add_shard("model.safetensors", nullptr);
  }

  const TensorLocation& find(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end())
      raise(origin() + ": tensor " + name.substr(0, 60) + " is not in the folder");
    return found->second;
  }

  void read_shards() {
    const auto json = parse_strictly(text_of(index), path_of(index));
    if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
      fail_file(index, "expected an object with a weight_map");
    std::map<std::string, std::set<std::string>> files;  // file, its tensors
    for (const auto& [name, file] : json["weight_map"].items()) {
      if (!file.is_string() || !is_plain(file.get<std::string>()))
        fail_file(index,
                  "tensor " + name.substr(0, 60) + ": expected the name of a file in the folder");
      files[file.get<std::string>()].insert(name);
    }
    if (files.empty()) fail_file(index, "the weight_map is empty");
    for (const auto& [file, names] : files) add_shard(file, &names);
  }

  // `listed`: the names that the index says are in the file.
  void add_shard(const std::string& file, const std::set<std::string>* listed) {
    if (!exists(file)) fail_file(file, "is missing");
    check_inside(file);
    shards_.push_back(io::SafeTensors::read(folder_ / file));
    files_.push_back(file);
    if (listed != nullptr) {
      for (const std::string& name : *listed)
        if (!shards_.back().contains(name))
          fail_file(file, "tensor " + name.substr(0, 60) + " is in the index, but not in the file");
    }
    for (const std::string& name : shards_.back().names()) {
      if (listed != nullptr && !listed->contains(name))
        fail_file(file, "tensor " + name.substr(0, 60) + " is in the file, but not in the index");
      const auto begins = [&name](const std::string& prefix) { return name.starts_with(prefix); };
      if (std::any_of(table_.ignored.begin(), table_.ignored.end(), begins)) continue;
      const std::string own = name_of(name);
      if (!tensors_.emplace(own, TensorLocation{shards_.size() - 1, name}).second)
        fail_file(file, "tensor " + own.substr(0, 60) + " is there twice");
    }
  }

  // Neither a path, nor a name of the folder itself or of the one above it.
  static bool is_plain(const std::string& file) {
    return !file.empty() && file.ends_with(".safetensors") &&
           file.find_first_of("/\\:") == std::string::npos && file.find('\0') == std::string::npos;
  }

  // In this format or another, such as pytorch_model.bin: the copy has other weights.
  static bool has_weights(const std::string& file) {
    constexpr std::array endings{
        ".safetensors",   ".bin",     ".bin.index.json",     ".pt",   ".pth",  ".h5",
        ".h5.index.json", ".msgpack", ".msgpack.index.json", ".gguf", ".onnx", ".onnx_data"};
    return std::any_of(endings.begin(), endings.end(),
                       [&](const char* ending) { return file.ends_with(ending); });
  }

  // Of a save that was killed.
  static bool is_temporary(const std::string& file) {
    return file.starts_with(".fastweights-") && file.ends_with(".tmp");
  }

  bool exists(const std::string& file) const {
    std::error_code error;
    return std::filesystem::exists(folder_ / file, error);
  }

  // Fails if `file` is a link to a file outside of the folder.
  void check_inside(const std::string& file) const {
    std::error_code error;
    const auto root = std::filesystem::canonical(folder_ / ".", error);
    if (error) return;  // there is no such folder
    const auto target = std::filesystem::weakly_canonical(root / file, error);
    if (error) return;  // nor such a file
    const auto relative = target.lexically_relative(root);
    if (!relative.empty() && *relative.begin() != "..") return;
    const auto cache = root.parent_path();
    if (cache.filename() != "snapshots" || target.parent_path() != cache.parent_path() / "blobs")
      fail_file(file, "is a link to a file outside of the folder");
  }
  std::string path_of(const std::string& file) const { return (folder_ / file).string(); }

  std::string text_of(const std::string& file) const {
    constexpr std::uintmax_t limit = 16 << 20;  // bounds what a hostile file can cost
    check_inside(file);
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(folder_ / file, error);
    if (error) fail_file(file, "cannot be read: " + error.message());
    if (size > limit) fail_file(file, "has more than 16 MiB");
    std::string text(size, '\0');
    std::ifstream stream(folder_ / file, std::ios::binary);
    stream.read(text.data(), static_cast<std::streamsize>(size));
    if (!stream) fail_file(file, "cannot be read");
    return text;
  }

  [[noreturn]] void fail_file(const std::string& file, const std::string& what) const {
    raise(path_of(file.substr(0, 100)) + ": " + what);
  }
  [[noreturn]] static void raise(const std::string& message) {
    fw::detail::raise<CheckpointError>(message);
  }

  std::filesystem::path folder_;
  NameTable table_;
  Config config_;
  bool is_sharded_;
  std::vector<std::string> files_;
  std::vector<io::SafeTensors> shards_;
  std::map<std::string, TensorLocation> tensors_;
};

}  // namespace fw::models
