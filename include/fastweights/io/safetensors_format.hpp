/// Shared by the safetensors reader and writer: the error, a tensor's description, its checked size
/// in bytes, and the text of messages.
///
/// Functions that do not depend on a type are declared here and in the next headers, and defined in
/// implementation/. A program that links fastweights::compiled does not compile them again.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fastweights/io/dtype.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io {

/// Every error of this format. The message names the file and the tensor and says what is wrong.
class SafeTensorsError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Axis lengths, slowest first (row-major); empty for a scalar.
using Shape = std::vector<Eigen::Index>;

/// One entry of the header: bytes [begin, end) of the data that follows it.
struct TensorInfo {
  DType dtype{};
  Shape shape;
  std::size_t begin = 0;
  std::size_t end = 0;
};

namespace detail {

struct Header {
  std::map<std::string, TensorInfo, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;
};

/// The limit of the reference implementation. It bounds the time that a hostile header can cost.
inline constexpr std::uint64_t max_header_bytes = 100'000'000;

/// Bytes of the little-endian length in front of the header.
inline constexpr std::size_t length_bytes = 8;

inline constexpr std::string_view metadata_name = "__metadata__";

/// width times the product of the axes, or nothing if it overflows. The product leaves out axes of
/// length zero, so that overflow does not depend on the order of the axes.
std::optional<std::size_t> checked_bytes(const Shape& shape, std::size_t width);

std::string tensor_label(std::string_view name);  ///< tensor "name"
std::string to_text(const Shape& shape);          ///< [3, 4]

/// Throws SafeTensorsError if the header is longer than max_header_bytes.
void check_header_length(std::uint64_t length);

/// Throws SafeTensorsError at the first error.
Header parse_header(std::string_view text);

/// Checks that every tensor fits its shape, and that together they cover the data exactly once. A
/// file could hide bytes in a hole, or show the same bytes as two tensors.
void check_layout(const Header& header, std::size_t data_bytes);

}  // namespace detail
}  // namespace fw::io

#ifndef FASTWEIGHTS_COMPILED
#include "fastweights/io/implementation/safetensors_format.hpp"
#endif
