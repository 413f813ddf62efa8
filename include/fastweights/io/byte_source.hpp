/// The bytes of a file: in memory, or on disk and read when they are requested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "fastweights/io/safetensors_format.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io {

/// The bytes of one tensor, as in the file: row-major, little-endian, with any alignment. It keeps
/// them alive, except those that `SafeTensors::view` borrowed. Copies share them.
class TensorBytes : public std::span<const std::byte> {
 public:
  TensorBytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : std::span<const std::byte>(bytes), owner_(std::move(owner)) {}

 private:
  std::shared_ptr<const void> owner_;
};

namespace detail {

/// Bytes that several threads may read at once.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  virtual std::uint64_t size() const = 0;

  /// All bytes if they are in memory, and otherwise nothing.
  virtual std::span<const std::byte> memory() const { return {}; }

  /// Copies bytes from position `at`, and returns how many: less than requested only at the end of
  /// the file or after an error.
  virtual std::size_t read(std::uint64_t at, std::span<std::byte> to,
                           std::error_code& error) const = 0;
};

std::shared_ptr<const ByteSource> borrow_bytes(std::span<const std::byte> bytes);
std::shared_ptr<const ByteSource> own_bytes(std::vector<std::byte> bytes);

/// A regular file. Another writer may replace it: these are the bytes of the file that was opened.
/// Throws SafeTensorsError.
std::shared_ptr<const ByteSource> open_file(const std::filesystem::path& path);

/// Reads all of `to`, or throws SafeTensorsError, which begins with `origin` and says what `part`
/// of the file is missing.
void read_fully(const ByteSource& source, std::uint64_t at, std::span<std::byte> to,
                std::string_view origin, const std::string& part);

}  // namespace detail
}  // namespace fw::io

#ifndef FASTWEIGHTS_COMPILED
#include "fastweights/io/implementation/byte_source.hpp"
#endif
