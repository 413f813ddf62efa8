#pragma once

#include <string>
#include <vector>

/// The name of a kind of model, on the command line and in tables.
struct Kind {
  std::string key, title;
};
using Kinds = std::vector<Kind>;

/// The title of a key, or the key itself where there is none.
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
