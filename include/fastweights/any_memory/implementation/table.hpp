#pragma once

#include <algorithm>
#include <fastweights/any_memory/table.hpp>
#include <fastweights/core/implementation/inline.hpp>

/// \file
/// The functions of any_memory/table.hpp and options.hpp that depend on no rule.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// "a, b, c"
template <class Names> std::string listed(const Names& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

FASTWEIGHTS_INLINE void OptionReader::check_unknown() const {
  std::vector<std::string> names = {"key_size", "value_size"};
  for (const MemoryOption& each : known_) names.push_back(each.name);
  for (const auto& [name, value] : given_.more)
    if (std::find(names.begin() + 2, names.end(), name) == names.end())
      throw_invalid({memory_, ": unknown option ", name, ", expected one of ", listed(names)});
}

FASTWEIGHTS_INLINE void throw_unknown_memory(std::string_view name,
                                             const std::vector<std::string_view>& known) {
  throw_invalid({"unknown memory ", name, ", expected one of ", listed(known)});
}

}  // namespace detail

}  // namespace fw
