/// Checks that the tensors of a safetensors header fit their shapes and cover the data.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "fastweights/core/implementation/inline.hpp"
#include "fastweights/io/safetensors_format.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io::detail {

inline std::string offsets_text(std::size_t begin, std::size_t end) {
  return "data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) + "]";
}

inline void check_extent(const std::string& name, const TensorInfo& info, std::size_t data_bytes) {
  const auto fail = [&](const std::string& what) {
    throw SafeTensorsError(tensor_label(name) + ": " + what);
  };
  if (info.begin > info.end) fail(offsets_text(info.begin, info.end) + " begin after their end");
  if (info.end > data_bytes) {
    fail(offsets_text(info.begin, info.end) + " reach beyond the " + std::to_string(data_bytes) +
         " bytes of data");
  }
  const auto needed = checked_bytes(info.shape, width_of(info.dtype));
  if (!needed) fail("shape " + to_text(info.shape) + " overflows");
  if (*needed != info.end - info.begin) {
    fail(offsets_text(info.begin, info.end) + " hold " + std::to_string(info.end - info.begin) +
         " bytes, " + std::string(name_of(info.dtype)) + " of shape " + to_text(info.shape) +
         " needs " + std::to_string(*needed));
  }
}

FASTWEIGHTS_INLINE void check_layout(const Header& header, std::size_t data_bytes) {
  std::multimap<std::pair<std::size_t, std::size_t>, std::string_view> names;  // by their offsets
  for (const auto& [name, info] : header.tensors) {
    check_extent(name, info, data_bytes);
    names.emplace(std::pair(info.begin, info.end), name);
  }
  std::size_t covered = 0;
  for (const auto& [offsets, name] : names) {
    const auto [begin, end] = offsets;
    if (begin != covered) {
      throw SafeTensorsError(tensor_label(name) + ": " + offsets_text(begin, end) +
                             (begin < covered ? " overlap" : " leave a hole after") +
                             " the data before it, which ends at " + std::to_string(covered));
    }
    covered = end;
  }
  if (covered != data_bytes) {
    throw SafeTensorsError(
        (names.empty() ? "no tensors" : "last " + tensor_label(names.rbegin()->second)) + ": " +
        std::to_string(data_bytes - covered) + " trailing bytes after data byte " +
        std::to_string(covered));
  }
}

}  // namespace fw::io::detail
