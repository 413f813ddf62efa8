#pragma once

#include <fastweights/io/safetensors.hpp>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

/// \file
/// Writes the files of a model's folder, good and bad ones.

namespace folder_files {

using Catch::Matchers::ContainsSubstring;
using fw::io::SafeTensorsWriter;

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A file with tensors of two float entries under these names.
inline void write_tensors(const std::filesystem::path& path,
                          const std::vector<std::string>& names) {
  SafeTensorsWriter writer;
  for (const std::string& name : names)
    writer.add(name, fw::io::Shape{2}, std::vector<float>{1, 2});
  writer.write(path);
}

/// The index of a sharded folder: files by the names of tensors.
inline std::string index_of(const std::map<std::string, std::string>& files) {
  std::string text = R"({"weight_map": {)";
  for (const auto& [tensor, file] : files)
    text += (text.back() == '{' ? "\"" : ", \"") + tensor + "\": \"" + file + '"';
  return text + "}}";
}

/// A folder with a config.json, and with model.safetensors if there are names.
class Folder : public TemporaryFolder {
 public:
  explicit Folder(const std::vector<std::string>& names = {}) {
    write_text(*this / "config.json", R"({"hidden_size": 2})");
    if (!names.empty()) write_tensors(*this / "model.safetensors", names);
  }
  void write_index(const std::map<std::string, std::string>& files) const {
    write_text(*this / "model.safetensors.index.json", index_of(files));
  }
};

/// Checks that f throws an Error whose message has all of these parts.
template <class Error, class F>
void check_error(const F& f, const std::vector<std::string>& parts) {
  CHECK_THROWS_AS(f(), Error);
  for (const std::string& part : parts) CHECK_THROWS_WITH(f(), ContainsSubstring(part));
}

}  // namespace folder_files
