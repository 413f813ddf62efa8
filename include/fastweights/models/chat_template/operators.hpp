#pragma once

#include <cstdio>
#include <fastweights/models/chat_template/printing.hpp>
#include <limits>

/// \file
/// Operators of values, as Python has them.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

[[noreturn]] inline void fail_operands(const std::string& sign, const Value& a, const Value& b,
                                       const Costs& costs) {
  costs.fail("the operator " + sign + " does not take " + type_name(a) + " and " + type_name(b));
}

inline bool is_true(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.whole() != 0;
    case Kind::real:
      return value.number() != 0;
    case Kind::text:
      return !value.text().empty();
    case Kind::list:
    case Kind::tuple:
    case Kind::view:
      return !value.items().empty();
    case Kind::dict:
      return !value.entries().empty();
    default:
      return true;
  }
}

inline const Value* entry_of(const Value& dict, const Value& key, Costs& costs);

inline bool are_equal(const Value& a, const Value& b, Costs& costs) {
  costs.step();
  if (a.is_number() && b.is_number())
    return a.is_whole() && b.is_whole() ? a.whole() == b.whole() : a.number() == b.number();
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::text:
      costs.step(a.text().size() / 64);
      return a.text() == b.text();
    case Kind::list:
    case Kind::tuple:
      return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                        [&](const Value& x, const Value& y) { return are_equal(x, y, costs); });
    case Kind::dict:
      return a.entries().size() == b.entries().size() &&
             std::all_of(a.entries().begin(), a.entries().end(), [&](const auto& entry) {
               const Value* other = entry_of(b, entry.first, costs);
               return other != nullptr && are_equal(entry.second, *other, costs);
             });
    default:
      return a.is_same(b);
  }
}

/// The entry of a key, or null.
inline const Value* entry_of(const Value& dict, const Value& key, Costs& costs) {
  for (const auto& [name, value] : dict.entries())
    if (are_equal(name, key, costs)) return &value;
  return nullptr;
}

/// a < b.
inline bool is_less(const Value& a, const Value& b, Costs& costs) {
  costs.step();
  if (a.is_number() && b.is_number())
    return a.is_whole() && b.is_whole() ? a.whole() < b.whole() : a.number() < b.number();
  if (a.kind() == b.kind() && a.is(Kind::text)) {
    costs.step(a.text().size() / 64);
    return a.text() < b.text();
  }
  if (a.kind() != b.kind() || !(a.is(Kind::list) || a.is(Kind::tuple)))
    fail_operands("<", a, b, costs);
  for (std::size_t i = 0; i < std::min(a.items().size(), b.items().size()); ++i)
    if (!are_equal(a.items()[i], b.items()[i], costs))
      return is_less(a.items()[i], b.items()[i], costs);
  return a.items().size() < b.items().size();
}

/// All that an iteration over the value gives.
inline Values iterated(const Value& value, Costs& costs) {
  Values all;
  if (value.is(Kind::undefined)) return all;
  if (value.is(Kind::generator)) return value.read();
  if (value.has_items()) {
    all = value.items();
  } else if (value.is(Kind::dict)) {
    for (const auto& entry : value.entries()) all.push_back(entry.first);
  } else if (value.is(Kind::text)) {
    costs.make(value.text().size() * sizeof(Value));
    for (const std::string_view each : characters(value.text()))
      all.push_back(Value::text(std::string(each), costs));
  } else {
    costs.fail(type_name(value) + " has no entries");
  }
  costs.make(all.size() * sizeof(Value));
  return all;
}

/// a in b.
inline bool is_in(const Value& a, const Value& b, Costs& costs) {
  if (b.is(Kind::text)) {
    if (!a.is(Kind::text)) fail_operands("in", a, b, costs);
    costs.step(b.text().size() / 16);
    return find(b.text(), a.text()) != std::string::npos;
  }
  if (b.is(Kind::dict)) return entry_of(b, a, costs) != nullptr;
  const Values all = iterated(b, costs);
  return std::any_of(all.begin(), all.end(),
                     [&](const Value& each) { return are_equal(a, each, costs); });
}

/// a b, or an error if it is no 64-bit number.
inline Value whole_result(const std::string& sign, std::int64_t a, std::int64_t b,
                          const Costs& costs) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  const double estimate = sign == "+"   ? double(a) + double(b)
                          : sign == "-" ? double(a) - double(b)
                          : sign == "*" ? double(a) * double(b)
                                        : 0;
  if (std::abs(estimate) > 9.2e18 || ((sign == "//" || sign == "%") && a == least))
    costs.fail("a result of " + sign + " is beyond 64 bits");
  if (sign == "+") return Value::integer(a + b);
  if (sign == "-") return Value::integer(a - b);
  if (sign == "*") return Value::integer(a * b);
  const bool rounds = a % b != 0 && (a < 0) != (b < 0);  // Python rounds down
  return Value::integer(sign == "//" ? a / b - rounds : a % b + (rounds ? b : 0));
}

inline Value number_result(const std::string& sign, const Value& a, const Value& b,
                           const Costs& costs) {
  if ((sign == "/" || sign == "//" || sign == "%") && b.number() == 0)
    costs.fail("a division by zero");
  if (a.is_whole() && b.is_whole() && sign != "/")
    return whole_result(sign, a.whole(), b.whole(), costs);
  const double x = a.number(), y = b.number();
  if (sign == "+") return Value::real(x + y);
  if (sign == "-") return Value::real(x - y);
  if (sign == "*") return Value::real(x * y);
  if (sign == "/") return Value::real(x / y);
  const double floor = std::floor(x / y);
  return Value::real(sign == "//" ? floor : x - floor * y);
}

/// The text or list `times` times.
inline Value repeated(const Value& value, std::int64_t times, Costs& costs) {
  const std::size_t n = times < 0 ? 0 : std::size_t(times);
  const bool is_text = value.is(Kind::text);
  const std::size_t size = is_text ? value.text().size() : value.items().size() * sizeof(Value);
  if (size > 0 && n > std::size_t(Bounds::made_bytes) / size)
    costs.fail("the template makes more than " + std::to_string(Bounds::made_bytes) + " bytes");
  costs.make(size * n);
  std::string text;
  Values items;
  for (std::size_t i = 0; size > 0 && i < n; ++i) {
    if (is_text)
      text += value.text();
    else
      items.insert(items.end(), value.items().begin(), value.items().end());
  }
  return is_text ? Value::text(std::move(text), costs)
                 : Value::list(std::move(items), costs, value.kind());
}

/// The text for HTML.
inline std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    constexpr std::string_view marks = "&<>'\"";
    constexpr const char* names[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    const std::size_t known = marks.find(c);
    known == marks.npos ? result += c : result += names[known];
  }
  return result;
}

/// Texts one behind the other. If one is safe, the other is escaped.
inline Value added(const Value& a, const Value& b, Costs& costs) {
  const bool safe = a.is_safe() || b.is_safe();
  const auto part = [&](const Value& each) {
    return safe && !each.is_safe() ? escaped(each.text()) : each.text();
  };
  const Value result = Value::text(part(a) + part(b), costs);
  return safe ? result.safe() : result;
}

inline Value formatted(const Value& format, const Value& given, Costs& costs);

/// The result of + − * / // and %.
inline Value operated(const std::string& sign, const Value& a, const Value& b, Costs& costs) {
  if (a.is_number() && b.is_number()) return number_result(sign, a, b, costs);
  const auto repeats = [](const Value& x) {
    return (x.is(Kind::text) && !x.is_safe()) || x.is(Kind::list) || x.is(Kind::tuple);
  };
  if (sign == "*" && repeats(a) && b.is_whole()) return repeated(a, b.whole(), costs);
  if (sign == "*" && repeats(b) && a.is_whole()) return repeated(b, a.whole(), costs);
  if (sign == "%" && a.is(Kind::text) && !a.is_safe()) return formatted(a, b, costs);
  if (sign != "+" || a.kind() != b.kind()) fail_operands(sign, a, b, costs);
  if (a.is(Kind::text)) return added(a, b, costs);
  if (!a.is(Kind::list) && !a.is(Kind::tuple)) fail_operands(sign, a, b, costs);
  Values items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return Value::list(std::move(items), costs, a.kind());
}

/// One conversion of a format, such as %5.1f.
inline std::string converted(std::string conversion, const Value& value, Costs& costs) {
  const char type = conversion.back();
  char buffer[512];
  if (type == 's' || type == 'r') {
    const std::string text = printed(value, costs, type == 'r');
    if (conversion.size() != 2) costs.fail("the format " + conversion + " is not supported");
    return text;
  }
  if (!value.is_number()) costs.fail("the format " + conversion + " takes a number");
  if (type == 'd' || type == 'i' || type == 'x' || type == 'X') {
    if (!value.is_whole()) costs.fail("the format " + conversion + " takes a whole number");
    conversion.insert(conversion.size() - 1, "ll");
    std::snprintf(buffer, sizeof buffer, conversion.c_str(), static_cast<long long>(value.whole()));
  } else {
    std::snprintf(buffer, sizeof buffer, conversion.c_str(), value.number());
  }
  return buffer;
}

/// Python's format % values, with the conversions s r d i x X f e g. Widths and digits have at most
/// two figures.
inline Value formatted(const Value& format, const Value& given, Costs& costs) {
  const Values values = given.is(Kind::tuple) ? given.items() : Values{given};
  const std::string& text = format.text();
  std::string result;
  std::size_t next = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    const std::size_t end = text.find_first_not_of("-+ 0123456789.", i + 1);
    if (end == std::string::npos || end - i > 8 ||
        std::string_view("%srdixXfeg").find(text[end]) == std::string_view::npos)
      costs.fail("the format " + text.substr(i, 10) + " is not supported");
    for (std::size_t k = i + 1, digits = 0; k < end; ++k)
      if (digits = is_digit(text[k]) ? digits + 1 : 0; digits > 2)
        costs.fail("the format " + text.substr(i, 10) + " is not supported");
    if (text[end] == '%') {
      result += '%';
    } else {
      if (next == values.size()) costs.fail("a format has more conversions than values");
      result += converted(text.substr(i, end + 1 - i), values[next++], costs);
    }
    i = end;
  }
  if (next < values.size() && !given.is(Kind::dict))
    costs.fail("a format has fewer conversions than values");
  return Value::text(std::move(result), costs);
}

}  // namespace fw::models::chat
