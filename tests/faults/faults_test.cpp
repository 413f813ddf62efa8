// Every call of the system that fails while a file is saved or read: a clear error, and the old
// file or the new one.

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fastweights/io/safetensors.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "calls.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;
using fw::io::SafeTensors;

// A folder with a file, saved through a link, and the temporary file of a dead process.
class Folder {
 public:
  Folder() {
    save(folder_ / "file", 1);
    ::chmod((folder_ / "file").c_str(), 0640);
    fs::create_symlink("file", folder_ / "link");
    std::ofstream(folder_ / ".fastweights-0000000000000000.tmp") << "x";
  }
  ~Folder() { calls::fail_none(); }  // so that the folder can be removed
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  static void save(const fs::path& path, float number) {
    fw::io::SafeTensorsWriter writer;
    writer.add("a", {1000}, std::vector<float>(1000, number));
    writer.add("b", {3}, std::vector<float>(3, number));
    writer.write(path);
  }
  fs::path link() const { return folder_ / "link"; }

  // The number in the file; 0 if the file is damaged in any way.
  float number() const {
    const auto file = SafeTensors::read(folder_ / "file");
    std::vector<float> all = file.values<float>("a");
    for (const float x : file.values<float>("b")) all.push_back(x);
    for (const float x : all)
      if (x != all[0]) return 0;
    return fs::is_symlink(link()) && all.size() == 1003 ? all[0] : 0;
  }
  unsigned mode() const { return unsigned(fs::status(folder_ / "file").permissions()); }
  std::size_t entries() const { return folder_.entries().size(); }

 private:
  TemporaryFolder folder_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("faults: a save in which one call fails leaves the old file or the new one", "[faults]") {
  int faults = 0;
  for (const char* call : {"open", "opendir", "fdopendir", "stat", "lstat", "readlink", "fstat",
                           "flock", "fchmod", "fchown", "write", "short write", "fsync", "rename"})
    for (const int error : {EIO, EINTR, ENOSPC})
      for (int number = 1; number < 50; ++number) {
        const Folder folder;
        calls::fail(call, number, error);
        const std::string message =
            error_of<fw::io::SafeTensorsError>([&] { Folder::save(folder.link(), 2); });
        if (!calls::has_failed()) break;
        INFO(call << " " << number << ", error " << error << ": " << message);
        ++faults;
        const float found = folder.number();
        CHECK((found == 1 || found == 2));
        CHECK(folder.mode() == 0640);
        if (message == "no error")
          CHECK(found == 2);
        else if (found == 1)
          CHECK(contains(message, "cannot be written: "));
        else
          CHECK(contains(message, "is written, but may not be on disk: "));
        Folder::save(folder.link(), 3);
        CHECK(folder.number() == 3);
        CHECK(folder.entries() == 2);
      }
  calls::fail_none();
  CHECK(faults > 30);
}

TEST_CASE("faults: interrupted calls are repeated, and short ones continue", "[faults]") {
  const Folder folder;
  for (const auto& [call, number] :
       {std::pair("write", 1), {"fsync", 1}, {"fsync", 2}, {"open", 1}, {"short write", 2}}) {
    INFO(call);
    calls::fail(call, number, EINTR);
    Folder::save(folder.link(), 5);
    CHECK(calls::has_failed());
    CHECK(folder.number() == 5);
  }
}

TEST_CASE("faults: another process may take a temporary file for an abandoned one", "[faults]") {
  const Folder folder;
  calls::fail("steal", 1, 0);  // the abandoned file, which another save removes first
  Folder::save(folder.link(), 2);
  CHECK(calls::has_failed());
  calls::fail("steal", 1, 0);  // the new file, before it is locked
  Folder::save(folder.link(), 3);
  CHECK(calls::has_failed());
  CHECK(folder.number() == 3);
  CHECK(folder.entries() == 2);
}

TEST_CASE("faults: a folder that cannot be synchronised", "[faults]") {
  const Folder folder;
  calls::fail("fsync", 2, EINVAL);  // this file system does not do it
  Folder::save(folder.link(), 2);
  CHECK(calls::has_failed());
  calls::fail("fsync", 2, EIO);
  CHECK(contains(error_of<fw::io::SafeTensorsError>([&] { Folder::save(folder.link(), 3); }),
                 "is written, but may not be on disk: Input/output error"));
  CHECK(folder.number() == 3);
}

TEST_CASE("faults: the owner of the old file is kept if the system permits it", "[faults]") {
  if (::geteuid() != 0) return;  // only root can give files away
  const Folder folder;
  REQUIRE(::chown(folder.link().c_str(), 1234, 4321) == 0);
  const auto owner = [&] {
    struct stat status {};
    ::stat(folder.link().c_str(), &status);
    return std::pair(status.st_uid, status.st_gid);
  };
  Folder::save(folder.link(), 2);
  CHECK(owner() == std::pair<uid_t, gid_t>(1234, 4321));
  calls::fail("fchown", 1, EPERM);
  Folder::save(folder.link(), 3);
  CHECK(owner().first == 0);
  CHECK(folder.mode() == 0640);
  REQUIRE(::chown(folder.link().c_str(), 0, 4321) == 0);
  Folder::save(folder.link(), 4);
  CHECK(owner() == std::pair<uid_t, gid_t>(0, 4321));
}

TEST_CASE("faults: a file that cannot be read names the part", "[faults]") {
  const Folder folder;
  for (const char* call : {"open", "fstat"}) {
    calls::fail(call, 1, EACCES);
    CHECK(contains(error_of<fw::io::SafeTensorsError>([&] { SafeTensors::read(folder.link()); }),
                   "cannot be opened: Permis"));
  }
  calls::fail("pread", 1, EIO);
  CHECK(contains(error_of<fw::io::SafeTensorsError>([&] { SafeTensors::read(folder.link()); }),
                 "link: header cannot be read: Input/output error"));
  const auto file = SafeTensors::read(folder.link());
  calls::fail("pread", 1, EIO);
  CHECK(contains(error_of<fw::io::SafeTensorsError>([&] { file.values<float>("b"); }),
                 "link: tensor \"b\" cannot be read: "));
  calls::fail("pread", 1, EINTR);
  CHECK(file.values<float>("b") == std::vector<float>(3, 1.0f));
  calls::fail("short pread", 1, 0);
  CHECK(file.values<float>("b") == std::vector<float>(3, 1.0f));
}
