/// Reads the end tokens of a folder: see end_tokens.hpp.
#pragma once

#include <fastweights/models/config.hpp>
#include <fastweights/models/end_tokens.hpp>
#include <fastweights/models/implementation/inline.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {
namespace detail {

inline std::vector<int> ids_of_entry(const Config& config, const char* name, Index vocabulary) {
  const std::vector<Index> given =
      config.is_list(name) ? config.sizes(name) : std::vector<Index>{config.count(name)};
  std::vector<int> ids;
  for (const Index id : given) {
    if (id >= vocabulary)
      config.fail(name, "expected ids below " + std::to_string(vocabulary) + ", the vocabulary");
    ids.push_back(static_cast<int>(id));
  }
  return ids;
}

}  // namespace detail

FASTWEIGHTS_TEXT_INLINE std::vector<int> end_tokens(const std::filesystem::path& folder,
                                                    Index vocabulary) {
  constexpr const char* name = "eos_token_id";
  const auto read = [&](const char* file) {
    const auto path = folder / file;
    return Config::parse(text_of_file(path, 16 << 20), path.string());
  };
  if (std::filesystem::exists(folder / "generation_config.json"))
    if (const Config config = read("generation_config.json"); config.has(name))
      return detail::ids_of_entry(config, name, vocabulary);
  const Config whole = read("config.json"), text = text_config(whole);
  const Config& config = text.has(name) ? text : whole;
  return config.has(name) ? detail::ids_of_entry(config, name, vocabulary) : std::vector<int>{};
}

}  // namespace fw::models
