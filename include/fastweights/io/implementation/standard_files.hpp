/// Files on systems without POSIX, by the C++ standard library alone.
///
/// A file is opened again for each read, so that it can be replaced meanwhile. A saved file
/// replaces the old one in one rename. There is no function here to put it on disk, to keep its
/// mode, or to find temporary files of processes that were killed.
#pragma once

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <utility>

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

/// True if a folder or the like has this name. Windows gives a folder a size, and may open it.
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

[[noreturn]] inline void fail_to_write(const std::filesystem::path& name,
                                       const std::error_code& error) {
  fail(name.string(), "cannot be written: " + error.message());
}

/// A folder whose files change. There is no function here to lock it or to put it on disk.
class Folder {
 public:
  Folder(const std::filesystem::path& folder, const std::filesystem::path&) : path_(folder) {}

  void lock() const {}
  /// Removes a file or a link if it is there.
  std::error_code remove(const std::string& file) const {
    std::error_code error;
    std::filesystem::remove(path_ / file, error);
    return error;
  }
  std::error_code put_on_disk() const { return {}; }

 private:
  std::filesystem::path path_;
};

/// A file under a temporary name beside its target, whose place it takes when it is complete. A
/// symbolic link at the target is replaced, not followed.
class NewFile {
 public:
  /// Errors call it `name`.
  NewFile(const std::filesystem::path& target, const std::filesystem::path& name)
      : target_(target), name_(name), temporary_(target), stream_(temporary_.path(), mode) {
    if (is_no_file(target)) fail(name.string(), "cannot be written: not a regular file");
    check();
  }

  void write(std::span<const std::byte> bytes) {
    stream_.write(reinterpret_cast<const char*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()));
    check();
  }
  void put_on_disk() {
    stream_.close();
    check();
  }
  /// The path of the file until then.
  const std::filesystem::path& place() const { return temporary_.path(); }
  std::error_code take_place() {
    std::error_code error;
    std::filesystem::rename(temporary_.path(), target_, error);
    return error;
  }

 private:
  static constexpr auto mode = std::ios::binary | std::ios::out;

  void check() const {
    if (!stream_) fail_to_write(name_, {errno != 0 ? errno : EIO, std::generic_category()});
  }

  std::filesystem::path target_, name_;
  Temporary temporary_;
  std::ofstream stream_;  // is closed before the temporary file is removed
};

inline void replace(const std::filesystem::path& path,
                    std::span<const std::span<const std::byte>> parts) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
  if (error) fail_to_write(path, error);
  NewFile file(target, path);
  for (const auto part : parts) file.write(part);
  file.put_on_disk();
  if ((error = file.take_place())) fail_to_write(path, error);
}

}  // namespace fw::io::detail::standard
