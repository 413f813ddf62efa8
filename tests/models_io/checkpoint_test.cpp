// A model's folder, as it is published, damaged or hostile.

#include <sys/stat.h>

#include <fastweights/models/checkpoint.hpp>

#include "models_io/folder_files.hpp"

namespace {

using namespace folder_files;
using fw::io::SafeTensorsError;
using fw::models::Checkpoint;
using fw::models::CheckpointError;
namespace fs = std::filesystem;

// The message names the file, and has these parts too.
template <class Error = CheckpointError>
void refused(const Folder& folder, const std::string& file, std::vector<std::string> parts = {}) {
  parts.push_back((folder / file).string());
  check_error<Error>([&] { Checkpoint::read(folder.path()); }, parts);
}

TEST_CASE("a folder with one file", "[models_io]") {
  const Folder folder({"a.weight", "b"});
  const Checkpoint checkpoint = Checkpoint::read(folder.path());
  CHECK(checkpoint.config().size("hidden_size") == 2);
  CHECK(checkpoint.folder() == folder.path());
  CHECK(checkpoint.names() == std::vector<std::string>{"a.weight", "b"});
  CHECK(checkpoint.contains("b"));
  CHECK(!checkpoint.contains("c"));
  CHECK(checkpoint.shape("b") == fw::io::Shape{2});
  CHECK(checkpoint.dtype("b") == fw::io::DType::F32);
  CHECK(checkpoint.values<double>("b") == std::vector<double>{1, 2});
}

TEST_CASE("a tensor that a folder does not have", "[models_io]") {
  const Folder folder({"a"});
  const Checkpoint checkpoint = Checkpoint::read(folder.path());
  const std::vector<std::string> parts{folder.path().string(), "tensor b"};
  check_error<CheckpointError>([&] { checkpoint.shape("b"); }, parts);
  check_error<CheckpointError>([&] { checkpoint.dtype("b"); }, parts);
  check_error<CheckpointError>([&] { checkpoint.values<float>("b"); }, parts);
  check_error<SafeTensorsError>([&] { checkpoint.values<int>("a"); },
                                {(folder / "model.safetensors").string(), "\"a\""});
}

TEST_CASE("a folder with shards", "[models_io]") {
  const Folder folder;
  write_tensors(folder / "one.safetensors", {"a", "c"});
  write_tensors(folder / "two.safetensors", {"b"});
  folder.write_index(
      {{"a", "one.safetensors"}, {"b", "two.safetensors"}, {"c", "one.safetensors"}});
  const Checkpoint checkpoint = Checkpoint::read(folder.path());
  CHECK(checkpoint.names() == std::vector<std::string>{"a", "b", "c"});
  CHECK(checkpoint.values<float>("b") == std::vector<float>{1, 2});
}

TEST_CASE("names are replaced or left out by their first part", "[models_io]") {
  const Folder folder({"model.language_model.layers.0", "lm_head", "mtp.norm", "model.visual.x"});
  const Checkpoint checkpoint = Checkpoint::read(folder.path());
  CHECK(checkpoint.names() == std::vector<std::string>{"lm_head", "model.layers.0"});
  CHECK(checkpoint.values<float>("model.layers.0") == std::vector<float>{1, 2});
  const Folder twice({"model.language_model.a", "model.a"});
  refused(twice, "model.safetensors", {"model.a", "twice"});
}

TEST_CASE("a folder without its files", "[models_io]") {
  const Folder folder;
  refused(folder, "model.safetensors", {"is missing"});
  fs::remove(folder / "config.json");
  refused(folder, "config.json", {"cannot be read"});
  check_error<CheckpointError>([&] { Checkpoint::read(folder / "nowhere"); }, {"nowhere"});
  check_error<CheckpointError>([&] { Checkpoint::read(""); }, {"config.json", "cannot be read"});
}

TEST_CASE("a folder with one file and with shards", "[models_io]") {
  const Folder folder({"a"});
  folder.write_index({{"a", "model.safetensors"}});
  refused(folder, "model.safetensors", {"index.json"});
}

TEST_CASE("a config.json that is not what it should be", "[models_io]") {
  const Folder folder({"a"});
  const std::string nested(1000000, '[');
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("nothing"), std::string("[1, 2]"),
        std::string("5"), std::string("null"), std::string("{\"a\": 1e999}"),
        std::string("{\"a\": \"\xff\"}"), std::string("{} {}"), "{\"a\": " + nested}) {
    write_text(folder / "config.json", text);
    refused<std::invalid_argument>(folder, "config.json");
  }
  write_text(folder / "config.json", "{\"a\": " + nested + std::string(1000000, ']') + '}');
  refused<std::invalid_argument>(folder, "config.json", {"has more than 32 levels"});
  fs::resize_file(folder / "config.json", (std::uintmax_t(16) << 20) + 1);
  refused(folder, "config.json", {"16 MiB"});
  fs::remove(folder / "config.json");
  fs::create_directory(folder / "config.json");
  refused(folder, "config.json", {"cannot be read"});
}

TEST_CASE("an index that is not what it should be", "[models_io]") {
  const Folder folder;
  const std::string index = "model.safetensors.index.json";
  for (const char* text : {"[]", "{}", R"({"weight_map": []})", R"({"weight_map": null})",
                           R"({"weight_map": "a"})", R"({"weight_map": {}})"}) {
    write_text(folder / index, text);
    refused(folder, index, {"weight_map"});
  }
  for (const char* text :
       {R"({"weight_map": {"a.weight": 5}})", R"({"weight_map": {"a.weight": null}})",
        R"({"weight_map": {"a.weight": ["b.safetensors"]}})"}) {
    write_text(folder / index, text);
    refused(folder, index, {"a.weight"});
  }
}

TEST_CASE("an index is read as strictly as config.json", "[models_io]") {
  const Folder folder;
  write_tensors(folder / "x.safetensors", {"a"});
  const std::string index = "model.safetensors.index.json", entry = R"("a": "x.safetensors")";
  const auto refused_text = [&](const std::string& text, const std::string& why) {
    INFO(text.substr(0, 80));
    write_text(folder / index, text);
    refused<std::invalid_argument>(folder, index, {why});
  };
  for (const std::string& text :
       {std::string(), std::string("{"), "{\"weight_map\": {" + entry + "}} x",
        "{\"weight_map\": {" + entry + ",}}",
        std::string(R"({"weight_map": {"\x": "x.safetensors"}})"),
        std::string("{\"weight_map\": {\"\xff\": \"x.safetensors\"}}")})
    refused_text(text, "is not JSON");
  refused_text("{\"weight_map\": {" + entry + ", " + entry + "}}", "the name a is there twice");
  refused_text("{\"weight_map\": {" + entry + R"(, "\u0061": "x.safetensors"}})",
               "the name a is there twice");
  refused_text("{\"weight_map\": {}, \"weight_map\": {" + entry + "}}",
               "the name weight_map is there twice");
  const std::string open(1000000, '['), close(1000000, ']');
  refused_text("{\"weight_map\": {\"a\": " + open + close + "}}", "has more than 32 levels");
  write_text(folder / index, "{\"weight_map\": {" + entry + "}}");
  CHECK(Checkpoint::read(folder.path()).contains("a"));
}

TEST_CASE("an index that points outside of the folder", "[models_io]") {
  const Folder outside({"a.weight"}), folder;
  const std::string target = (outside / "model.safetensors").string();
  const std::string above = "../" + outside.path().filename().string() + "/model.safetensors";
  REQUIRE(fs::exists(folder.path() / above));
  for (const std::string& file :
       {target, above, std::string("x/../../x.safetensors"), std::string("sub/x.safetensors"),
        std::string("./x.safetensors"), std::string(".."), std::string("."), std::string(),
        std::string("..\\\\x.safetensors"), std::string("C:x.safetensors"),
        std::string("x\\u0000.safetensors"), std::string("/dev/stdin"), std::string("x.bin"),
        std::string("config.json"), std::string("//host/x.safetensors")}) {
    INFO(file);
    folder.write_index({{"a.weight", file}});
    refused(folder, "model.safetensors.index.json", {"a.weight"});
  }
}

TEST_CASE("links that point outside of the folder", "[models_io]") {
  const Folder outside({"a.weight"}), folder;
  fs::create_symlink(outside / "model.safetensors", folder / "x.safetensors");
  folder.write_index({{"a.weight", "x.safetensors"}});
  refused(folder, "x.safetensors", {"outside of the folder"});
  fs::remove(folder / "model.safetensors.index.json");
  fs::create_symlink(outside / "model.safetensors", folder / "model.safetensors");
  refused(folder, "model.safetensors", {"outside of the folder"});
  const fs::path relative = fs::path("..") / outside.path().filename() / "config.json";
  fs::remove(folder / "config.json");
  fs::create_symlink(relative, folder / "config.json");
  refused(folder, "config.json", {"outside of the folder"});
  fs::remove(folder / "config.json");
  fs::create_symlink("config.json", folder / "config.json");  // to itself
  refused(folder, "config.json");
}

TEST_CASE("links inside of the folder, and a link to the folder", "[models_io]") {
  const Folder folder, links;
  write_tensors(folder / "blob", {"a"});
  fs::create_symlink("blob", folder / "model.safetensors");
  CHECK(Checkpoint::read(folder.path()).contains("a"));
  fs::create_directory_symlink(folder.path(), links / "model");
  CHECK(Checkpoint::read(links / "model").contains("a"));
}

// A cache of Hugging Face keeps files under blobs/ and links to them under snapshots/revision/.
TEST_CASE("links of a download cache", "[models_io]") {
  const Folder cache;
  const fs::path snapshot = cache / "snapshots" / "0123";
  fs::create_directories(snapshot);
  fs::create_directory(cache / "blobs");
  write_tensors(cache / "blobs" / "weights", {"a"});
  write_text(cache / "blobs" / "config", "{}");
  fs::create_symlink("../../blobs/weights", snapshot / "model.safetensors");
  fs::create_symlink("../../blobs/config", snapshot / "config.json");
  CHECK(Checkpoint::read(snapshot).contains("a"));
  fs::remove(snapshot / "config.json");
  fs::create_symlink("../../config.json", snapshot / "config.json");
  check_error<CheckpointError>([&] { Checkpoint::read(snapshot); }, {"outside of the folder"});
}

TEST_CASE("shards that are missing, or are no files", "[models_io]") {
  const Folder folder;
  folder.write_index({{"a.weight", "x.safetensors"}});
  refused(folder, "x.safetensors", {"is missing"});
  fs::create_symlink("nowhere", folder / "x.safetensors");
  refused(folder, "x.safetensors", {"is missing"});
  fs::remove(folder / "x.safetensors");
  fs::create_directory(folder / "x.safetensors");
  refused<SafeTensorsError>(folder, "x.safetensors", {"regular file"});
  fs::remove(folder / "x.safetensors");
  REQUIRE(mkfifo((folder / "x.safetensors").c_str(), 0600) == 0);
  refused<SafeTensorsError>(folder, "x.safetensors", {"regular file"});
  const std::string long_name = std::string(300, 'x') + ".safetensors";
  folder.write_index({{"a.weight", long_name}});
  refused(folder, std::string(90, 'x'), {"is missing"});
}

TEST_CASE("shards and index that do not list the same tensors", "[models_io]") {
  const Folder folder;
  write_tensors(folder / "x.safetensors", {"a", "b"});
  folder.write_index({{"a", "x.safetensors"}});
  refused(folder, "x.safetensors", {"tensor b is in the file, but not in the index"});
  folder.write_index({{"a", "x.safetensors"}, {"b", "x.safetensors"}, {"c", "x.safetensors"}});
  refused(folder, "x.safetensors", {"tensor c is in the index, but not in the file"});
  write_tensors(folder / "y.safetensors", {"a"});
  folder.write_index({{"a", "y.safetensors"}, {"b", "x.safetensors"}});
  refused(folder, "x.safetensors", {"tensor a"});
}

TEST_CASE("a file that is cut off, at every length", "[models_io]") {
  const Folder folder({"a.weight", "b"});
  const fs::path file = folder / "model.safetensors";
  for (std::uintmax_t size = fs::file_size(file); size-- > 0;) {
    fs::resize_file(file, size);
    refused<SafeTensorsError>(folder, "model.safetensors");
  }
}

}  // namespace
