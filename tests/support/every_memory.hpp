#pragma once

#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/subject.hpp"

namespace laws {

/// Sizes of keys and of values.
using SizePairs = std::vector<std::pair<fw::Index, fw::Index>>;

/// Calls law(subject) for every memory of the table with these sizes, and with other options.
template <class S, class Law> void for_every_memory(const SizePairs& sizes, const Law& law) {
  const auto each = [&](const std::vector<Subject>& all) {
    for (const Subject& subject : all) {
      INFO(subject.text());
      law(subject);
    }
  };
  for (const auto& [dk, dv] : sizes) each(subjects<S>(dk, dv));
  each(variants<S>());
}
/// Calls law(float(), subject) and law(double(), subject) for them.
template <class Law> void in_float_and_double(const SizePairs& sizes, const Law& law) {
  for_every_memory<float>(sizes, [&](const Subject& subject) { law(float(), subject); });
  for_every_memory<double>(sizes, [&](const Subject& subject) { law(double(), subject); });
}

}  // namespace laws
