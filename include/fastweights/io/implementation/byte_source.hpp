/// The bytes of a file: what a reader opens. See byte_source.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "fastweights/io/byte_source.hpp"
#include "fastweights/io/implementation/files.hpp"
#include "fastweights/io/safetensors_format.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io::detail {

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  explicit MemorySource(std::vector<std::byte> bytes) : owned_(std::move(bytes)), bytes_(owned_) {}

  std::uint64_t size() const override { return bytes_.size(); }
  std::span<const std::byte> memory() const override { return bytes_; }
  std::size_t read(std::uint64_t at, std::span<std::byte> to, std::error_code&) const override {
    const auto rest = bytes_.subspan(std::min(static_cast<std::size_t>(at), bytes_.size()));
    const auto part = rest.first(std::min(rest.size(), to.size()));
    std::copy(part.begin(), part.end(), to.begin());
    return part.size();
  }

 private:
  std::vector<std::byte> owned_;
  std::span<const std::byte> bytes_;
};

inline std::shared_ptr<const ByteSource> borrow_bytes(std::span<const std::byte> bytes) {
  return std::make_shared<MemorySource>(bytes);
}

inline std::shared_ptr<const ByteSource> own_bytes(std::vector<std::byte> bytes) {
  return std::make_shared<MemorySource>(std::move(bytes));
}

#if FASTWEIGHTS_FILES
/// A regular file. Another writer may replace it: these are the bytes of the file that was opened.
/// Throws SafeTensorsError.
inline std::shared_ptr<const ByteSource> open_file(const std::filesystem::path& path) {
  return files::open(path);
}
#endif

/// Reads all of `to`, or throws SafeTensorsError, which begins with `origin` and names the `part`
/// of the file.
inline void read_fully(const ByteSource& source, std::uint64_t at, std::span<std::byte> to,
                       std::string_view origin, const std::string& part) {
  std::error_code error;
  const std::size_t count = source.read(at, to, error);
  if (error) fail(origin, part + " cannot be read: " + error.message());
  if (count < to.size())
    fail(origin, part + ": the file has shrunk since it was opened; it ends at byte " +
                     std::to_string(at + count));
}

}  // namespace fw::io::detail
