/// The bytes of a file: in memory, or on disk and read when they are requested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include "fastweights/core/abi.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io {

/// The bytes of one tensor, as in the file: row-major, little-endian, with any alignment. It keeps
/// them alive, except those that `SafeTensors::view` borrowed. Copies share them.
class TensorBytes : public std::span<const std::byte> {
 public:
  /// `owner` keeps the bytes alive, and may be null.
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

}  // namespace detail
}  // namespace fw::io
