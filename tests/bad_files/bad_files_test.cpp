// Every bad file is refused with a message that names its fault, in little memory.

#include <fastweights/io/safetensors.hpp>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "files.hpp"
#include "heap.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace {

using fw::io::SafeTensors;

// A file of these bytes, with a hole behind them if it is sparse.
class File {
 public:
  explicit File(const BadFile& bad)
      : path_(std::filesystem::temp_directory_path() /
              ("bad_file_" + std::to_string(std::random_device{}()))) {
    std::ofstream(path_, std::ios::binary) << bad.bytes;
    if (bad.sparse_bytes > 0)
      std::filesystem::resize_file(path_, bad.bytes.size() + bad.sparse_bytes);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Of the header that a file claims to have, if it has that much.
std::size_t header_bytes(const BadFile& bad) {
  const std::size_t rest = bad.bytes.size() - std::min<std::size_t>(bad.bytes.size(), 8);
  return bad.sparse_bytes > 0 ? std::max<std::size_t>(rest, 1'000'000) : rest;
}

void check_message(const BadFile& bad, const std::string& origin, const std::string& message) {
  INFO(message);
  CHECK(message.starts_with(origin + ": "));
  CHECK(message.find(bad.fault) != std::string::npos);
  CHECK(message.size() <= 200 + origin.size());
}

}  // namespace

TEST_CASE("every bad file is refused with its fault, in at most 4 times the header and 1 MiB",
          "[bad files]") {
  const std::vector<BadFile> files = bad_files();
  CHECK(files.size() >= 90);
  std::set<std::string> names;
  for (const BadFile& bad : files) {
    INFO(bad.name);
    CHECK(names.insert(bad.name).second);
    const std::size_t limit = 4 * header_bytes(bad) + (1U << 20U);
    {
      const File file(bad);
      std::string message;
      CHECK(heap::peak_of([&] {
              message = error_of<fw::io::SafeTensorsError>([&] { SafeTensors::read(file.path()); });
            }) <= limit);
      check_message(bad, file.path().string(), message);
    }
    if (bad.sparse_bytes > 0) continue;
    const std::span<const std::byte> bytes = std::as_bytes(std::span(bad.bytes));
    std::string message;
    CHECK(heap::peak_of([&] {
            message = error_of<fw::io::SafeTensorsError>([&] { SafeTensors::view(bytes, "it"); });
          }) <= limit);
    check_message(bad, "it", message);
    CHECK(message.size() <= 200);
  }
  WARN(files.size() << " bad files refused");
}

TEST_CASE("a good file with a large header is opened in 4 times the header", "[bad files]") {
  std::string header = "{";
  for (int i = 0; i < 40'000; ++i)
    header += "\"" + std::to_string(i) + "\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[" +
              std::to_string(i) + "," + std::to_string(i + 1) + "]},";
  header.back() = '}';
  BadFile good;
  for (int i = 0; i < 8; ++i) good.bytes += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  good.bytes += header + std::string(40'000, 'x');
  const File file(good);
  const std::size_t peak =
      heap::peak_of([&] { CHECK(SafeTensors::read(file.path()).size() == 40'000); });
  CHECK(peak <= 4 * header.size());
  CHECK(peak >= header.size());  // the heap is counted
}
