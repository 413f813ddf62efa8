#pragma once

#include <fastweights/models/chat_template/operators.hpp>
#include <optional>

/// \file
/// Entries, slices and conversions of values.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// value[key], undefined if there is none. A Namespace has members.
inline Value item_of(const Value& value, const Value& key, Costs& costs) {
  const auto undefined = [&] { return Value::undefined(printed(key, costs)); };
  if (value.is(Kind::undefined)) costs.fail(type_name(value) + ", has no entries");
  if (value.is(Kind::dict)) {
    const Value* entry = entry_of(value, key, costs);
    return entry == nullptr ? undefined() : *entry;
  }
  if (value.is(Kind::object) && key.is(Kind::text)) {
    if (const auto* space = dynamic_cast<const Namespace*>(value.object()))
      if (const auto found = space->members.find(key.text()); found != space->members.end())
        return found->second;
    return undefined();
  }
  if (!key.is_whole() || !(value.is(Kind::text) || value.has_items())) return undefined();
  const bool is_text = value.is(Kind::text);
  if (is_text) costs.step(value.text().size() / 8);
  const auto size =
      static_cast<std::int64_t>(is_text ? length(value.text()) : value.items().size());
  const std::int64_t i = key.whole() < 0 ? key.whole() + size : key.whole();
  if (i < 0 || i >= size) return undefined();
  if (!is_text) return value.items()[std::size_t(i)];
  return Value::text(std::string(characters(value.text())[std::size_t(i)]), costs);
}

/// The path a.b.0 of a value, as the argument `attribute` of filters has it.
inline Value path_of(Value value, const Value& path, Costs& costs) {
  if (path.is_whole()) return item_of(value, path, costs);
  const std::string text = printed(path, costs);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const bool is_number =
        !part.empty() && part.size() < 10 && std::all_of(part.begin(), part.end(), is_digit);
    value = item_of(value, is_number ? Value::integer(std::stol(part)) : Value::text(part, costs),
                    costs);
    begin = end + 1;
  }
  return value;
}

/// value[begin:end:step]; absent bounds are none.
inline Value slice_of(const Value& value, const Value& begin, const Value& end, const Value& step,
                      Costs& costs) {
  for (const Value* each : {&begin, &end, &step})
    if (!each->is(Kind::none) && !each->is_whole()) costs.fail("a slice takes whole numbers");
  if (!value.is(Kind::text) && !value.has_items()) return Value::undefined("a slice");
  const bool is_text = value.is(Kind::text);
  const auto all = is_text ? characters(value.text()) : std::vector<std::string_view>();
  costs.make(all.size() * sizeof(std::string_view));
  const auto size = static_cast<std::int64_t>(is_text ? all.size() : value.items().size());
  const std::int64_t by = step.is(Kind::none) ? 1 : step.whole();
  if (by == 0) costs.fail("a slice has the step 0");
  const std::int64_t least = by < 0 ? -1 : 0, most = by < 0 ? size - 1 : size;
  const auto bound_of = [&](const Value& given, std::int64_t otherwise) {
    if (given.is(Kind::none)) return otherwise;
    return std::clamp(given.whole() < 0 ? given.whole() + size : given.whole(), least, most);
  };
  const std::int64_t last = bound_of(end, by < 0 ? -1 : size);
  std::string text;
  Values items;
  for (std::int64_t i = bound_of(begin, by < 0 ? size - 1 : 0); by < 0 ? i > last : i < last;) {
    costs.step();
    if (is_text)
      text += all[std::size_t(i)];
    else
      items.push_back(value.items()[std::size_t(i)]);
    if (std::abs(double(by)) > double(size)) break;
    i += by;
  }
  return is_text ? Value::text(std::move(text), costs)
                 : Value::list(std::move(items), costs, value.kind());
}

/// The number of entries or characters.
inline std::size_t size_of(const Value& value, Costs& costs) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::text:
      costs.step(value.text().size() / 64);
      return length(value.text());
    case Kind::list:
    case Kind::tuple:
    case Kind::view:
      return value.items().size();
    case Kind::dict:
      return value.entries().size();
    default:
      costs.fail(type_name(value) + " has no length");
  }
}

/// The number that a text is, or nothing: [spaces][sign]digits, or with a point.
template <class Number> std::optional<Number> number_of(std::string_view text) {
  text = stripped(text);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  Number number{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return {};
  return number;
}

/// Python's int(value), or nothing.
inline std::optional<std::int64_t> to_whole(const Value& value, const Costs& costs) {
  if (value.is_whole()) return value.whole();
  std::optional<double> real;
  if (value.is(Kind::real)) real = value.number();
  if (value.is(Kind::text)) {
    if (const auto whole = number_of<std::int64_t>(value.text())) return whole;
    real = number_of<double>(value.text());
  }
  if (value.is(Kind::undefined)) costs.fail(type_name(value) + ", is no number");
  if (!real || !std::isfinite(*real)) return {};
  if (std::abs(*real) > 9.2e18) costs.fail("a whole number is beyond 64 bits");
  return static_cast<std::int64_t>(*real);
}

/// Lists of two, such as the items of a dict.
inline Values pairs_of(const Entries& entries, Costs& costs) {
  Values all;
  for (const auto& [key, value] : entries)
    all.push_back(Value::list({key, value}, costs, Kind::tuple));
  return all;
}

}  // namespace fw::models::chat
