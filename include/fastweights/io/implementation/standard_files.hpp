/// Files on systems without POSIX, by the C++ standard library alone.
///
/// A file is opened again for each read, so that it can be replaced meanwhile. A saved file
/// replaces the old one in one rename. There is no function here to put it on disk, to keep its
/// mode, or to find temporary files of processes that were killed.
#pragma once

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <system_error>

#include "fastweights/io/byte_source.hpp"
#include "fastweights/io/safetensors_format.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io::detail::standard {

class FileSource final : public ByteSource {
 public:
  FileSource(std::filesystem::path path, std::uint64_t size)
      : path_(std::move(path)), size_(size) {}

  std::uint64_t size() const override { return size_; }
  std::size_t read(std::uint64_t at, std::span<std::byte> to,
                   std::error_code& error) const override {
    std::ifstream stream(path_, std::ios::binary);
    if (!stream) error = std::make_error_code(std::errc::io_error);
    stream.seekg(static_cast<std::streamoff>(at));
    stream.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
    return static_cast<std::size_t>(stream.gcount());
  }

 private:
  std::filesystem::path path_;
  std::uint64_t size_;
};

/// Whether a folder or the like has this name. Windows gives a folder a size, and may open it.
inline bool is_no_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
}

inline std::shared_ptr<const ByteSource> open(const std::filesystem::path& path) {
  if (is_no_file(path)) fail(path.string(), "cannot be opened: not a regular file");
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (error) fail(path.string(), "cannot be opened: " + error.message());
  return std::make_shared<FileSource>(path, size);
}

/// Removes the file at the end unless it has been renamed.
class Temporary {
 public:
  explicit Temporary(const std::filesystem::path& target) : path_(target) {
    path_ += "." + std::to_string(std::random_device{}()) + ".tmp";
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void replace(const std::filesystem::path& path,
                    std::span<const std::span<const std::byte>> parts) {
  if (is_no_file(path)) fail(path.string(), "cannot be written: not a regular file");
  std::error_code error;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
  if (error) fail(path.string(), "cannot be written: " + error.message());
  const Temporary temporary(target);
  errno = EIO;  // if no call says more
  std::ofstream stream(temporary.path(), std::ios::binary);
  for (const auto part : parts)
    stream.write(reinterpret_cast<const char*>(part.data()),
                 static_cast<std::streamsize>(part.size()));
  stream.close();
  if (stream)
    std::filesystem::rename(temporary.path(), target, error);
  else
    error = std::error_code(errno, std::generic_category());
  if (error) fail(path.string(), "cannot be written: " + error.message());
}

}  // namespace fw::io::detail::standard
