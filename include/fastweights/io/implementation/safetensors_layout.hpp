/// Checks that the tensors of a safetensors header fit their shapes and cover the data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "fastweights/core/implementation/inline.hpp"
#include "fastweights/io/safetensors_format.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io::detail {

inline std::string offsets_text(std::uint64_t begin, std::uint64_t end) {
  return "data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) + "]";
}

struct ExtentError {
  [[noreturn]] void operator()(const std::string& what) const {
    fail(origin, tensor_label(header.name(tensor)) + ": " + what);
  }
  const Header& header;
  const Header::Tensor& tensor;
  std::string_view origin;
};

inline void check_extent(const Header& header, const Header::Tensor& tensor,
                         std::uint64_t data_bytes, std::string_view origin) {
  const std::uint64_t begin = tensor.begin, end = tensor.end;
  const ExtentError fail_here{header, tensor, origin};
  if (begin > end) fail_here(offsets_text(begin, end) + " begin after their end");
  if (end > data_bytes)
    fail_here(offsets_text(begin, end) + " reach beyond the " + std::to_string(data_bytes) +
              " bytes of data");
  const Shape shape = header.info(tensor).shape;
  const auto needed = checked_bytes(shape, width_of(tensor.dtype));
  if (!needed) fail_here("shape " + to_text(shape) + " overflows");
  if (*needed != end - begin)
    fail_here(offsets_text(begin, end) + " hold " + std::to_string(end - begin) + " bytes, " +
              std::string(name_of(tensor.dtype)) + " of shape " + to_text(shape) + " needs " +
              std::to_string(*needed));
}

// The tensors' numbers in the order of their data.
inline std::vector<std::uint32_t> order_of_data(const Header& header) {
  std::vector<std::uint32_t> order(header.tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](std::uint32_t i) {
    const Header::Tensor& tensor = header.tensors[i];
    return std::tuple(tensor.begin, tensor.end, i);
  };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  return order;
}

FASTWEIGHTS_INLINE void check_layout(const Header& header, std::uint64_t data_bytes,
                                     std::string_view origin) {
  for (const Header::Tensor& tensor : header.tensors)
    check_extent(header, tensor, data_bytes, origin);
  std::uint64_t covered = 0;
  const Header::Tensor* last = nullptr;
  for (const std::uint32_t i : order_of_data(header)) {
    const Header::Tensor& tensor = header.tensors[i];
    if (tensor.begin != covered)
      fail(origin, tensor_label(header.name(tensor)) + ": " +
                       offsets_text(tensor.begin, tensor.end) +
                       (tensor.begin < covered ? " overlap" : " leave a hole after") +
                       " the data before it, which ends at " + std::to_string(covered));
    covered = tensor.end;
    last = &tensor;
  }
  if (covered != data_bytes)
    fail(origin, (last ? "last " + tensor_label(header.name(*last)) : "no tensors") + ": " +
                     std::to_string(data_bytes - covered) + " trailing bytes after data byte " +
                     std::to_string(covered));
}

}  // namespace fw::io::detail
