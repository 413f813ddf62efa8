/// Shared by the safetensors reader and writer: the error, a tensor's description, its checked size
/// in bytes, and the text of messages.
///
/// Functions that do not depend on a type are declared here and in the next headers, and defined in
/// implementation/. A program that links fastweights::compiled does not compile them again.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>
#include <version>

#include "fastweights/io/dtype.hpp"

/// True if there are functions that take the path of a file. Without them the headers include no
/// header of files: a device without a file system reads and writes bytes in memory. By default 1
/// if the standard library has <filesystem>. All sources of a program need the same setting.
#ifndef FASTWEIGHTS_FILES
#ifdef __cpp_lib_filesystem
#define FASTWEIGHTS_FILES 1
#else
#define FASTWEIGHTS_FILES 0
#endif
#endif

namespace fw::inline FASTWEIGHTS_ABI::io {

/// Every error of this format. The message names the file and the tensor and says what is wrong. It
/// has at most 200 characters, not counting a path beyond 60.
class SafeTensorsError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Axis lengths, slowest first (row-major); empty for a scalar.
using Shape = std::vector<Eigen::Index>;

/// One entry of the header: bytes [begin, end) of the data that follows it.
struct TensorInfo {
  DType dtype{};          ///< the type of an element
  Shape shape;            ///< rows, columns, …; empty for a single number
  std::size_t begin = 0;  ///< the first byte, counted from the end of the header
  std::size_t end = 0;    ///< one behind the last byte
};

namespace detail {

/// A part of the header's text.
struct TextRange {
  std::uint32_t begin = 0, size = 0;
};

/// The entries of a header. Names and shapes remain in its text, whose strings are decoded in
/// place. So a header of n bytes takes less than 4 n bytes, whatever it holds.
struct Header {
  struct Tensor {
    TextRange name;
    std::uint32_t shape;  // where it begins in the text
    DType dtype;
    std::uint64_t begin, end;
  };

  std::string text;
  std::deque<Tensor> tensors;  // in alphabetical order; no vector, which copies itself to grow
  std::map<std::string, std::string, std::less<>> metadata;

  std::string_view name(const Tensor& tensor) const {
    return std::string_view(text).substr(tensor.name.begin, tensor.name.size);
  }
  TensorInfo info(const Tensor& tensor) const;
  const Tensor* find(std::string_view name) const;  ///< null if there is none
};

/// The limit of the reference implementation. It bounds the time that a hostile header can cost.
inline constexpr std::uint64_t max_header_bytes = 100'000'000;

/// Limits of this reader and writer alone. They bound the memory that a hostile header can cost.
inline constexpr std::size_t max_axes = 64, max_metadata = 4096;

/// Bytes of the little-endian length in front of the header.
inline constexpr std::size_t length_bytes = 8;

inline constexpr std::string_view metadata_name = "__metadata__";

/// width times the product of the axes, or nothing if it overflows. The product leaves out axes of
/// length zero, so that overflow does not depend on the order of the axes.
std::optional<std::size_t> checked_bytes(const Shape& shape, std::size_t width);

std::string tensor_label(std::string_view name);  ///< tensor "name", a long name cut
std::string to_text(const Shape& shape);          ///< [3, 4], a long shape cut

/// The longest message, and the longest part of it that comes from a file.
inline constexpr std::size_t message_limit = 200, quote_limit = 60;

/// Throws SafeTensorsError("origin: what"). The message is cut at 200 bytes; of a long origin only
/// 60 count.
[[noreturn]] void fail(std::string_view origin, std::string_view what);

/// Throws SafeTensorsError if the header is longer than max_header_bytes.
void check_header_length(std::uint64_t length, std::string_view origin);

/// Throws SafeTensorsError at the first error.
Header parse_header(std::string text, std::string_view origin);

/// Checks that every tensor fits its shape, and that together they cover the data exactly once. A
/// file could hide bytes in a hole, or show the same bytes as two tensors.
void check_layout(const Header& header, std::uint64_t data_bytes, std::string_view origin);

}  // namespace detail
}  // namespace fw::io

#ifndef FASTWEIGHTS_COMPILED
#include "fastweights/io/implementation/safetensors_format.hpp"
#endif
