/// The functions of safetensors_format.hpp.
#pragma once

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

#include "fastweights/core/errors.hpp"
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
  return "tensor " + json_quote(name, quote_limit);
}

FASTWEIGHTS_INLINE std::string to_text(const Shape& shape) {
  std::string text = "[";
  for (const Eigen::Index axis : shape) {
    if (text.size() > quote_limit) return text + ", ...]";
    text += (text.size() > 1 ? ", " : "") + std::to_string(axis);
  }
  return text + "]";
}

FASTWEIGHTS_INLINE void fail(std::string_view origin, std::string_view what) {
  const std::size_t limit = message_limit - 2 - std::min(origin.size(), quote_limit);
  fw::detail::raise<SafeTensorsError>(std::string(origin) + ": " + shortened(what, limit));
}

FASTWEIGHTS_INLINE void check_header_length(std::uint64_t length, std::string_view origin) {
  if (length > max_header_bytes)
    fail(origin, "header of " + std::to_string(length) + " bytes exceeds the limit of " +
                     std::to_string(max_header_bytes));
}

// The text is that of a checked header: an array of natural numbers begins there.
FASTWEIGHTS_INLINE TensorInfo Header::info(const Tensor& tensor) const {
  TensorInfo info{tensor.dtype,
                  {},
                  static_cast<std::size_t>(tensor.begin),
                  static_cast<std::size_t>(tensor.end)};
  const char* const end = text.data() + text.size();
  for (const char* at = text.data() + tensor.shape; *at != ']';) {
    Eigen::Index axis = 0;
    const auto [next, error] = std::from_chars(at, end, axis);
    if (error == std::errc()) info.shape.push_back(axis);
    at = error == std::errc() ? next : at + 1;
  }
  return info;
}

FASTWEIGHTS_INLINE const Header::Tensor* Header::find(std::string_view wanted) const {
  const auto found =
      std::lower_bound(tensors.begin(), tensors.end(), wanted,
                       [&](const Tensor& tensor, std::string_view x) { return name(tensor) < x; });
  return found == tensors.end() || name(*found) != wanted ? nullptr : &*found;
}

}  // namespace fw::io::detail
