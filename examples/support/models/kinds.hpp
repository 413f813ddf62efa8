#pragma once

#include <string>
#include <vector>

/// What models are called, on the command line and in tables.
struct Kind {
  std::string key, title;
};
using Kinds = std::vector<Kind>;

/// The title of a key, or the key where it is of none.
inline std::string title_of(const Kinds& kinds, const std::string& key) {
  for (const Kind& kind : kinds)
    if (kind.key == key) return kind.title;
  return key;
}

inline std::vector<std::string> keys_of(const Kinds& kinds) {
  std::vector<std::string> keys;
  for (const Kind& kind : kinds) keys.push_back(kind.key);
  return keys;
}
