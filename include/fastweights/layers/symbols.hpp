#pragma once

#include <fastweights/core/errors.hpp>
#include <fastweights/core/views.hpp>
#include <span>
#include <string>
#include <string_view>

namespace fw::inline FASTWEIGHTS_ABI {

/// Tokens as symbol numbers 0 … symbols − 1. A std::vector<int> converts to it.
using Symbols = std::span<const int>;

namespace detail {

inline void check_symbol(std::string_view name, std::size_t t, int id, Index symbols) {
  if (id < 0 || id >= symbols)
    throw_invalid({name, ": token ", std::to_string(t), " is ", std::to_string(id),
                   ", expected 0 to ", std::to_string(symbols - 1)});
}
inline void check_symbols(std::string_view name, Symbols ids, Index symbols) {
  for (std::size_t t = 0; t < ids.size(); ++t) check_symbol(name, t, ids[t], symbols);
}

}  // namespace detail

}  // namespace fw
