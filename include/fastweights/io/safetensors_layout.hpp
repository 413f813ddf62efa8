/// Checks that the tensors of a safetensors header fit their shapes and cover the data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "fastweights/io/safetensors_format.hpp"

namespace fw::io::detail {

inline std::string offsets_text(const TensorInfo& info) {
  return "data_offsets [" + std::to_string(info.begin) + ", " + std::to_string(info.end) + "]";
}

inline void check_extent(const std::string& name, const TensorInfo& info, std::size_t data_bytes) {
  const auto fail = [&](const std::string& what) {
    throw SafeTensorsError(tensor_label(name) + ": " + what);
  };
  if (info.begin > info.end) fail(offsets_text(info) + " begin after their end");
  if (info.end > data_bytes) {
    fail(offsets_text(info) + " reach beyond the " + std::to_string(data_bytes) + " bytes of data");
  }
  const auto needed = checked_bytes(info.shape, width_of(info.dtype));
  if (!needed) fail("shape " + to_text(info.shape) + " overflows");
  if (*needed != info.end - info.begin) {
    fail(offsets_text(info) + " hold " + std::to_string(info.end - info.begin) + " bytes, " +
         std::string(name_of(info.dtype)) + " of shape " + to_text(info.shape) + " needs " +
         std::to_string(*needed));
  }
}

/// Checks that every tensor fits its shape, and that together they cover the data exactly once. A
/// file could hide bytes in a hole, or show the same bytes as two tensors.
inline void check_layout(const Header& header, std::size_t data_bytes) {
  using Item = std::pair<const std::string, TensorInfo>;
  std::vector<const Item*> items;
  for (const Item& item : header.tensors) {
    check_extent(item.first, item.second, data_bytes);
    items.push_back(&item);
  }
  std::ranges::sort(
      items, {}, [](const Item* item) { return std::pair(item->second.begin, item->second.end); });
  std::size_t covered = 0;
  for (const Item* item : items) {
    const std::size_t begin = item->second.begin;
    if (begin != covered) {
      throw SafeTensorsError(tensor_label(item->first) + ": " + offsets_text(item->second) +
                             (begin < covered ? " overlap" : " leave a hole after") +
                             " the data before it, which ends at " + std::to_string(covered));
    }
    covered = item->second.end;
  }
  if (covered != data_bytes) {
    throw SafeTensorsError(
        (items.empty() ? "no tensors" : "last " + tensor_label(items.back()->first)) + ": " +
        std::to_string(data_bytes - covered) + " trailing bytes after data byte " +
        std::to_string(covered));
  }
}

}  // namespace fw::io::detail
