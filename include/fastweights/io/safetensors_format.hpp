/// Shared by the safetensors reader and writer: the error, a tensor's description, its checked size
/// in bytes, and the text of messages.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fastweights/io/dtype.hpp"
#include "fastweights/io/json_text.hpp"

namespace fw::io {

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
inline std::optional<std::size_t> checked_bytes(const Shape& shape, std::size_t width) {
  auto product = static_cast<Eigen::Index>(width);
  bool empty = false;
  for (const Eigen::Index axis : shape) {
    empty = empty || axis == 0;
    if (axis == 0) continue;
    if (axis < 0 || product > std::numeric_limits<Eigen::Index>::max() / axis) return std::nullopt;
    product *= axis;
  }
  return empty ? 0 : static_cast<std::size_t>(product);
}

inline std::string tensor_label(std::string_view name) { return "tensor " + json_quote(name); }

inline std::string to_text(const Shape& shape) {
  std::string text = "[";
  for (const Eigen::Index axis : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(axis);
  }
  return text + "]";
}

}  // namespace detail
}  // namespace fw::io
