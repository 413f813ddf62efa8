#pragma once

#include <ctime>
#include <fastweights/models/chat_template/filters.hpp>

/// \file
/// Functions of the environment: range, dict, raise_exception and strftime_now.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// Sets an entry, at its place if the key is there already.
inline void set_entry(Entries& entries, Value key, Value value, Costs& costs) {
  for (auto& [name, old] : entries)
    if (are_equal(name, key, costs)) {
      old = std::move(value);
      return;
    }
  entries.emplace_back(std::move(key), std::move(value));
}

/// range(stop), range(start, stop) and range(start, stop, step), of at most 100,000 numbers.
inline Value range(const Arguments& given, Costs& costs) {
  const Values all = bound(given, "range", {"start", "stop", "step"}, 1, costs);
  const bool has_stop = given.positional.size() > 1;
  const std::int64_t first = has_stop ? whole_of(all[0], "range", 0, costs) : 0;
  const std::int64_t stop = whole_of(all[has_stop], "range", 0, costs);
  const std::int64_t step = whole_of(all[2], "range", 1, costs);
  constexpr std::int64_t most = 100000;
  if (step == 0) costs.fail("range has the step 0");
  Values numbers;
  for (std::int64_t i = first; step > 0 ? i < stop : i > stop;) {
    if (std::int64_t(numbers.size()) == most) costs.fail("range has more than 100000 numbers");
    numbers.push_back(Value::integer(i));
    if (std::abs(double(i) + double(step)) > 9.2e18) break;
    i += step;
  }
  return Value::list(std::move(numbers), costs, Kind::view);
}

/// Entries of dict(…) and namespace(…): of a dict or pairs, and by names.
inline Entries entries_of(const Arguments& given, const std::string& function, Costs& costs) {
  Entries entries;
  if (given.positional.size() > 1) costs.fail(function + " takes one value");
  if (!given.positional.empty() && given.positional[0].is(Kind::dict))
    entries = given.positional[0].entries();
  else if (!given.positional.empty())
    for (const Value& pair : iterated(given.positional[0], costs)) {
      const Values two = iterated(pair, costs);
      if (two.size() != 2) costs.fail(function + " takes pairs");
      set_entry(entries, two[0], two[1], costs);
    }
  for (const auto& [name, value] : given.named)
    set_entry(entries, Value::text(name, costs), value, costs);
  return entries;
}

/// The time in a format of strftime.
inline Value time_text(const Arguments& given, std::time_t now, Costs& costs) {
  const Value format = bound(given, "strftime_now", {"format"}, 1, costs)[0];
  const std::string& text = text_of(format, "strftime_now", costs);
  const std::tm* local = std::localtime(&now);
  char buffer[1024];
  const std::size_t size = local == nullptr || text.empty()
                               ? 0
                               : std::strftime(buffer, sizeof buffer, text.c_str(), local);
  if (size == 0 && !text.empty()) costs.fail("strftime_now does not take " + text.substr(0, 40));
  return Value::text(valid_utf8(std::string(buffer, size)), costs);
}

}  // namespace fw::models::chat
