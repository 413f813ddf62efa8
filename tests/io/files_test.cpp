// Files on disk: tensors are read when they are requested, and a saved file is the old one or the
// new one.

#include <fastweights/io/implementation/standard_files.hpp>
#include <fastweights/io/safetensors.hpp>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"

#if defined __unix__ || defined __APPLE__
#define FASTWEIGHTS_TESTS_POSIX
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fastweights/io/implementation/posix_files.hpp>
#endif

namespace {

using fw::io::SafeTensors;
using fw::io::SafeTensorsError;
using fw::io::SafeTensorsWriter;
namespace fs = std::filesystem;

SafeTensorsWriter ones(std::size_t n, float value) {
  SafeTensorsWriter writer;
  writer.add("w", {static_cast<Eigen::Index>(n)}, std::vector<float>(n, value));
  return writer;
}

bool holds(const fs::path& path, float value) {
  const auto file = SafeTensors::read(path);
  const std::vector<float> w = file.values<float>("w");
  return std::all_of(w.begin(), w.end(), [&](float x) { return x == value; });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("files: a tensor of many pieces is read from the file as from memory", "[files]") {
  const TemporaryFolder folder;
  std::vector<float> floats(100'003);
  std::vector<std::int64_t> integers(40'001);
  for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < integers.size(); ++i) integers[i] = static_cast<std::int64_t>(i) - 9;
  SafeTensorsWriter writer;
  writer.add("floats", {7, 100'003 / 7 + 0}, std::vector<float>(floats.begin(), floats.end() - 1));
  writer.add("integers", {40'001}, integers);
  writer.add("none", Eigen::MatrixXf(0, 4));
  writer.metadata("k", "v");
  writer.write(folder / "model");

  const auto file = SafeTensors::read(folder / "model");
  floats.pop_back();
  CHECK(file.values<float>("floats") == floats);
  CHECK(file.values<std::int64_t>("integers") == integers);
  CHECK(file.values<float>("none").empty());
  CHECK(file.matrix<double>("floats").sum() > 0);
  CHECK(file.metadata().at("k") == "v");
  const auto memory = SafeTensors::parse(writer.bytes());
  for (const std::string& name : memory.names()) {
    const auto a = file.data(name), b = memory.data(name);
    CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
  CHECK(contains(error_of<SafeTensorsError>([&] { file.values<std::uint8_t>("integers"); }),
                 "element 0 is -9"));
}

TEST_CASE("files: bytes of a tensor outlive the file", "[files]") {
  const TemporaryFolder folder;
  ones(5, 2.0f).write(folder / "model");
  const auto from_file = SafeTensors::read(folder / "model").data("w");
  const auto from_memory = SafeTensors::parse(ones(5, 2.0f).bytes()).data("w");
  CHECK(std::equal(from_file.begin(), from_file.end(), from_memory.begin(), from_memory.end()));
}

TEST_CASE("files: a file that is not there or not a file", "[files]") {
  const TemporaryFolder folder;
  CHECK(contains(error_of<SafeTensorsError>([&] { SafeTensors::read(folder / "absent"); }),
                 "absent: cannot be opened: No such file"));
  CHECK(contains(error_of<SafeTensorsError>([&] { SafeTensors::read(folder / "."); }),
                 "not a regular file"));
  CHECK(contains(error_of<SafeTensorsError>([&] { ones(1, 1).write(folder / "."); }),
                 "not a regular file"));
}

TEST_CASE("files: systems without POSIX read and replace files too", "[files]") {
  namespace standard = fw::io::detail::standard;
  const TemporaryFolder folder;
  const fs::path path = folder / "model";
  const std::vector<std::byte> bytes = ones(9, 1.0f).bytes();
  const std::span<const std::byte> parts[] = {std::span(bytes).first(8),
                                              std::span(bytes).subspan(8)};
  standard::replace(path, parts);
  standard::replace(path, parts);
  CHECK(folder.entries() == std::vector<std::string>{"model"});
  CHECK(holds(path, 1.0f));

  const auto source = standard::open(path);
  CHECK(source->size() == bytes.size());
  std::vector<std::byte> read(bytes.size());
  std::error_code error;
  CHECK(source->read(3, std::span(read).subspan(3), error) == bytes.size() - 3);
  CHECK(std::equal(read.begin() + 3, read.end(), bytes.begin() + 3));
  CHECK(source->read(bytes.size() - 1, read, error) == 1);
  CHECK_FALSE(error);
  fs::remove(path);
  CHECK(source->read(0, read, error) == 0);
  CHECK(error);
  CHECK(contains(error_of<SafeTensorsError>([&] { standard::open(path); }),
                 "cannot be opened: No such file"));
  CHECK(contains(error_of<SafeTensorsError>([&] { standard::open(folder / "."); }),
                 "cannot be opened: not a regular file"));
#ifdef FASTWEIGHTS_TESTS_POSIX  // Windows has symbolic links for administrators only
  fs::create_symlink("loop", folder / "loop");
  CHECK(contains(error_of<SafeTensorsError>([&] { standard::replace(folder / "loop", parts); }),
                 "loop: cannot be written: "));
  fs::remove(folder / "loop");
#endif
  CHECK(contains(
      error_of<SafeTensorsError>([&] { standard::replace(folder / "absent" / "x", parts); }),
      "x: cannot be written: No such file"));
  fs::create_directories(folder / "taken" / "inside");
  CHECK(contains(error_of<SafeTensorsError>([&] { standard::replace(folder / "taken", parts); }),
                 "cannot be written: not a regular file"));
  CHECK(folder.entries() == std::vector<std::string>{"taken"});
}

#ifdef FASTWEIGHTS_TESTS_POSIX

namespace {

unsigned mode_of(const fs::path& path) {
  return static_cast<unsigned>(fs::status(path).permissions());
}

// Sets the umask, and restores it at the end.
class Umask {
 public:
  explicit Umask(mode_t mask) : old_(::umask(mask)) {}
  ~Umask() { ::umask(old_); }
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;

 private:
  mode_t old_;
};

}  // namespace

TEST_CASE("files: a file that shrinks while it is open is an error of the tensor", "[files]") {
  const TemporaryFolder folder;
  ones(50'000, 1.0f).write(folder / "model");
  const auto file = SafeTensors::read(folder / "model");
  fs::resize_file(folder / "model", 100'000);
  CHECK(contains(
      error_of<SafeTensorsError>([&] { file.values<float>("w"); }),
      "model: tensor \"w\": the file has shrunk since it was opened; it ends at byte 100000"));
  CHECK(contains(error_of<SafeTensorsError>([&] { file.data("w"); }), "has shrunk"));
}

TEST_CASE("files: an open file is the old one after it has been replaced", "[files]") {
  const TemporaryFolder folder;
  ones(10, 1.0f).write(folder / "model");
  const auto file = SafeTensors::read(folder / "model");
  ones(20, 2.0f).write(folder / "model");
  CHECK(file.values<float>("w") == std::vector<float>(10, 1.0f));
  CHECK(holds(folder / "model", 2.0f));
}

TEST_CASE("files: a new file follows the umask, and an old one keeps its mode", "[files]") {
  const TemporaryFolder folder;
  {
    const Umask mask(027);
    ones(1, 1.0f).write(folder / "new");
    CHECK(mode_of(folder / "new") == 0640);
  }
  const Umask mask(022);
  for (const mode_t mode : {0600U, 0644U, 0666U, 0400U, 0755U}) {
    ones(1, 1.0f).write(folder / "old");
    ::chmod((folder / "old").c_str(), mode);
    ones(1, 2.0f).write(folder / "old");
    CHECK(mode_of(folder / "old") == mode);
    CHECK(holds(folder / "old", 2.0f));
  }
}

TEST_CASE("files: a symbolic link stays, and its target is replaced", "[files]") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "inside");
  ones(1, 1.0f).write(folder / "inside/model");
  fs::create_symlink("inside/model", folder / "relative");
  fs::create_symlink(folder / "relative", folder / "absolute");
  ones(1, 2.0f).write(folder / "absolute");
  CHECK(holds(folder / "inside/model", 2.0f));
  CHECK(fs::is_symlink(folder / "absolute"));
  CHECK(fs::is_symlink(folder / "relative"));

  fs::create_symlink("inside/new", folder / "dangling");
  ones(1, 3.0f).write(folder / "dangling");
  CHECK(holds(folder / "inside/new", 3.0f));
  CHECK(fs::is_symlink(folder / "dangling"));

  fs::create_symlink("loop", folder / "loop");
  CHECK(contains(error_of<SafeTensorsError>([&] { ones(1, 1).write(folder / "loop"); }),
                 "cannot be written: "));
}

TEST_CASE("files: a path without a folder is in the current one", "[files]") {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder / ".");
  ones(1, 1.0f).write("model");
  CHECK(holds("model", 1.0f));
  fs::current_path(before);
  CHECK(folder.entries() == std::vector<std::string>{"model"});
}

TEST_CASE("files: a FIFO or device is refused and stays, for reading and writing", "[files]") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK(contains(error_of<SafeTensorsError>([&] { ones(1, 1).write(folder / "fifo"); }),
                 "fifo: cannot be written: not a regular file"));
  CHECK(contains(error_of<SafeTensorsError>([&] { SafeTensors::read(folder / "fifo"); }),
                 "not a regular file"));
  CHECK(fs::is_fifo(folder / "fifo"));
  CHECK(contains(error_of<SafeTensorsError>([&] { ones(1, 1).write("/dev/null"); }),
                 "not a regular file"));
  CHECK(folder.entries() == std::vector<std::string>{"fifo"});
}

TEST_CASE("files: temporary files of dead processes are removed, and of live ones not", "[files]") {
  const TemporaryFolder folder;
  const std::string dead = ".fastweights-0000000100000002.tmp", other = ".fastweights-1.tmp",
                    live = ".fastweights-0000000300000004.tmp";
  // Names of the same length that are not those of temporary files.
  const std::string of_user[] = {"xfastweights-0000000100000002.tmp",
                                 ".fastweights-0000000100000002.old"};
  const TemporaryFolder users;
  for (const std::string& name : of_user) std::ofstream(users / name) << "x";
  ones(1, 1.0f).write(users / "model");
  CHECK(users.entries().size() == 3);
  for (const std::string& name : {dead, live, other}) std::ofstream(folder / name) << "x";
  fs::create_symlink(folder / other, folder / ".fastweights-0000000500000006.tmp");
  const int lock = ::open((folder / live).c_str(), O_RDWR);
  REQUIRE(lock >= 0);
  REQUIRE(::flock(lock, LOCK_EX) == 0);
  ones(1, 1.0f).write(folder / "model");
  CHECK(folder.entries() ==
        std::vector<std::string>{live, ".fastweights-0000000500000006.tmp", other, "model"});
  ::close(lock);
  ones(1, 1.0f).write(folder / "model");
  CHECK_FALSE(fs::exists(folder / live));
}

TEST_CASE("files: a name that a temporary file already has is not used", "[files]") {
  const TemporaryFolder folder;
  const fs::path next = fw::io::detail::posix::temporary_name();
  std::string name = next.string();
  const unsigned number = static_cast<unsigned>(std::stoul(name.substr(21, 8), nullptr, 16));
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", number + 1);
  name.replace(21, 8, digits);
  std::ofstream(folder / name) << "x";
  const int lock = ::open((folder / name).c_str(), O_RDWR);
  REQUIRE(::flock(lock, LOCK_EX) == 0);
  ones(1, 1.0f).write(folder / "model");
  CHECK(folder.entries() == std::vector<std::string>{name, "model"});
  CHECK(fs::file_size(folder / name) == 1);
  ::close(lock);
}

TEST_CASE("files: a write that fails is an error, even of bytes that the system has not seen yet",
          "[files]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "model";
  const std::vector<std::byte> bytes = ones(9, 1.0f).bytes();
  const std::span<const std::byte> parts[] = {bytes};
  fw::io::detail::standard::replace(path, parts);
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string standard_error =
      error_of<SafeTensorsError>([&] { fw::io::detail::standard::replace(path, parts); });
  const std::string error = error_of<SafeTensorsError>([&] { ones(9, 2.0f).write(path); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  CHECK(contains(standard_error, "cannot be written: File too large"));
  CHECK(contains(error, "cannot be written: File too large"));
  CHECK(holds(path, 1.0f));
  CHECK(folder.entries() == std::vector<std::string>{"model"});
}

TEST_CASE("files: nothing is left of a file that cannot be written", "[files]") {
  const TemporaryFolder folder;
  ones(1, 1.0f).write(folder / "model");
  fs::create_directories(folder / "taken" / "inside");
  CHECK(contains(error_of<SafeTensorsError>([&] { ones(1, 2).write(folder / "taken"); }),
                 "not a regular file"));
  CHECK(contains(error_of<SafeTensorsError>([&] { ones(1, 2).write(folder / "absent" / "model"); }),
                 "model: cannot be written: No such file"));
  CHECK(contains(error_of<SafeTensorsError>([&] { ones(1, 2).write(folder / "model/inside"); }),
                 "Not a directory"));
  CHECK(folder.entries() == std::vector<std::string>{"model", "taken"});
  CHECK(holds(folder / "model", 1.0f));
}

#endif
