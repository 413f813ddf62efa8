/// The functions of safetensors_format.hpp.
#pragma once

#include <limits>

#include "fastweights/core/implementation/inline.hpp"
#include "fastweights/io/implementation/json_text.hpp"
#include "fastweights/io/safetensors_format.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io::detail {

FASTWEIGHTS_INLINE std::optional<std::size_t> checked_bytes(const Shape& shape, std::size_t width) {
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

FASTWEIGHTS_INLINE std::string tensor_label(std::string_view name) {
  return "tensor " + json_quote(name);
}

FASTWEIGHTS_INLINE std::string to_text(const Shape& shape) {
  std::string text = "[";
  for (const Eigen::Index axis : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(axis);
  }
  return text + "]";
}

FASTWEIGHTS_INLINE void check_header_length(std::uint64_t length) {
  if (length > max_header_bytes)
    throw SafeTensorsError("header of " + std::to_string(length) + " bytes exceeds the limit of " +
                           std::to_string(max_header_bytes));
}

}  // namespace fw::io::detail
