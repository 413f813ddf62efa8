// Every call of the system that fails while several files of a folder are replaced: the old files,
// the new ones, or a folder without the file that lists them.

#include <unistd.h>

#include <cerrno>
#include <fastweights/io/folder_update.hpp>
#include <fastweights/io/safetensors.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "calls.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;
using fw::io::SafeTensors;

std::string content_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A folder with two files of one number and a text, listed by an index, as a model in shards.
class Shards {
 public:
  Shards() {
    std::ofstream(source_ / "index") << "the same in all models";
    save(1);
    std::ofstream(folder_ / "old") << "x";
  }
  ~Shards() { calls::fail_none(); }  // so that the folder can be removed
  Shards(const Shards&) = delete;
  Shards& operator=(const Shards&) = delete;

  void save(int number) const {
    prepare(number);
    save_prepared(number);
  }
  void prepare(int number) const { std::ofstream(source_ / "text") << number; }
  void save_prepared(int number) const {
    fw::io::FolderUpdate update(folder_.path(), "index");
    update.copy("index", source_ / "index");
    update.copy("text", source_ / "text");
    for (const char* name : {"a", "b"}) {
      fw::io::SafeTensorsWriter file;
      file.add("x", {100}, std::vector<float>(100, static_cast<float>(number)));
      update.add(name, file);
    }
    update.remove("old");
    update.commit();
  }

  // The number in the files: 0 if there is no index, -1 for files of two models.
  int number() const {
    if (!fs::exists(folder_ / "index")) return 0;
    const std::string text = content_of(folder_ / "text");
    for (const char* name : {"a", "b"}) {
      const auto x = SafeTensors::read(folder_ / name).values<float>("x");
      if (x.at(99) != x.at(0) || text != std::to_string(static_cast<int>(x.at(0)))) return -1;
    }
    return text.empty() ? -1 : std::stoi(text);
  }
  bool has_old() const { return fs::exists(folder_ / "old"); }
  std::vector<std::string> entries() const { return folder_.entries(); }

 private:
  TemporaryFolder folder_, source_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("faults: files that are replaced together, and one call fails", "[faults]") {
  int faults = 0, old_ones = 0, new_ones = 0, none = 0;
  for (const char* call : {"open", "opendir", "fdopendir", "stat", "lstat", "fstat", "flock",
                           "fchmod", "write", "short write", "pread", "fsync", "rename", "unlink"})
    for (const int error : {EIO, ENOSPC})
      for (int number = 1; number < 60; ++number) {
        const Shards shards;
        shards.prepare(2);
        calls::fail(call, number, error);
        const std::string message =
            error_of<fw::io::SafeTensorsError>([&] { shards.save_prepared(2); });
        const bool has_failed = calls::has_failed();
        calls::fail_none();
        if (!has_failed) break;
        INFO(call << " " << number << ", error " << error << ": " << message);
        ++faults;
        const int found = shards.number();
        if (message == "no error") {
          CHECK(found == 2);
          CHECK_FALSE(shards.has_old());
        } else if (contains(message, "is not complete, and cannot be written: ")) {
          CHECK(found == 0);
          ++none;
        } else if (contains(message, "is written, but may not be on disk: ")) {
          CHECK(found == 2);
          ++new_ones;
        } else {
          CHECK(found == 1);
          CHECK(shards.has_old());
          ++old_ones;
        }
        shards.save(3);
        CHECK(shards.number() == 3);
        CHECK(shards.entries() == std::vector<std::string>{"a", "b", "index", "text"});
      }
  CHECK(faults > 60);
  CHECK(old_ones > 40);
  CHECK(new_ones > 0);
  CHECK(none > 10);
}

TEST_CASE("faults: one file that is replaced among others of the same bytes", "[faults]") {
  const TemporaryFolder folder, source;
  std::ofstream(source / "text") << "the same";
  const auto save = [&](float number) {
    fw::io::FolderUpdate update(folder.path(), "model");
    update.copy("text", source / "text");
    fw::io::SafeTensorsWriter file;
    file.add("x", number);
    update.add("model", file);
    update.commit();
  };
  save(1);
  calls::fail("rename", 1, EIO);
  const std::string message = error_of<fw::io::SafeTensorsError>([&] { save(2); });
  CHECK(calls::has_failed());
  CHECK(message == folder.path().string() + ": cannot be written: Input/output error");
  CHECK(SafeTensors::read(folder / "model").values<float>("x").at(0) == 1);
  save(3);
  CHECK(SafeTensors::read(folder / "model").values<float>("x").at(0) == 3);
  CHECK(folder.entries() == std::vector<std::string>{"model", "text"});
}

TEST_CASE("faults: an update of a folder that is used wrongly", "[faults]") {
  const TemporaryFolder folder;
  fw::io::FolderUpdate update(folder / "new", "model");
  const auto error = [](const auto& f) { return error_of<fw::io::SafeTensorsError>(f); };
  fw::io::SafeTensorsWriter file;
  for (const char* name : {"", ".", "..", "../x", "a/b", "/tmp/x"}) {
    CHECK(contains(error([&] { update.add(name, file); }), "is not the name of a file"));
    CHECK(contains(error([&] { update.remove(name); }), "is not the name of a file"));
  }
  update.add("other", file);
  CHECK(contains(error([&] { update.add("other", file); }), "other: is added twice"));
  CHECK(contains(error([&] { update.commit(); }), "has no new model"));
  update.add("model", file);
  update.commit();
  for (const auto& f : {std::function<void()>([&] { update.commit(); }),
                        std::function<void()>([&] { update.add("x", file); }),
                        std::function<void()>([&] { update.remove("x"); })})
    CHECK(contains(error(f), "is committed already"));
  CHECK(fs::exists(folder / "new" / "other"));
  CHECK(fs::exists(folder / "new" / "model"));
}
