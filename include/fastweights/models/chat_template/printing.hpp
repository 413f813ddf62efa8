#pragma once

#include <charconv>
#include <cmath>
#include <fastweights/models/chat_template/characters.hpp>
#include <fastweights/models/chat_template/value.hpp>

/// \file
/// Values as texts: Python's str, repr and json.dumps.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// The shortest number that reads the same, as Python writes it: 1.0, 0.1, 1e+16.
inline std::string printed(double x, bool json = false) {
  if (std::isnan(x)) return json ? "NaN" : "nan";
  if (std::isinf(x)) return std::string(x < 0 ? "-" : "") + (json ? "Infinity" : "inf");
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::scientific);
  const std::string all(buffer, end.ptr);
  const std::size_t e = all.find('e');
  const int exponent = std::stoi(all.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return all;
  std::string text(buffer,
                   std::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::fixed).ptr);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

inline void append_hexadecimal(std::string& text, std::uint32_t point, int digits) {
  for (int i = digits - 1; i >= 0; --i) text += "0123456789abcdef"[(point >> (4 * i)) & 15];
}

/// Python's repr of a text.
inline std::string represented(std::string_view text) {
  const bool doubles = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = doubles ? '"' : '\'';
  std::string result(1, quote);
  for (const std::string_view each : characters(text)) {
    const auto point = static_cast<std::uint32_t>(first_point(each));
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(point));
    const bool prints =
        point == ' ' || !(category == UTF8PROC_CATEGORY_CN || category >= UTF8PROC_CATEGORY_ZS);
    if (each == "\n")
      result += "\\n";
    else if (each == "\r")
      result += "\\r";
    else if (each == "\t")
      result += "\\t";
    else if (each == "\\" || each[0] == quote)
      (result += '\\') += each;
    else if (prints)
      result += each;
    else if (point < 0x100)
      append_hexadecimal(result += "\\x", point, 2);
    else if (point < 0x10000)
      append_hexadecimal(result += "\\u", point, 4);
    else
      append_hexadecimal(result += "\\U", point, 8);
  }
  return result += quote;
}

inline std::string printed(const Value& value, Costs& costs, bool is_inner = false);

/// The entries of a list or dict, separated by commas.
inline void append_entries(std::string& text, const Value& value, Costs& costs) {
  const char* separator = "";
  const auto add = [&](const Value& each, const char* before) {
    text += before + printed(each, costs, true);
    costs.make(0);
    separator = ", ";
  };
  if (value.is(Kind::dict)) {
    for (const auto& [key, entry] : value.entries()) {
      add(key, separator);
      add(entry, ": ");
    }
  } else {
    for (const Value& each : value.items()) add(each, separator);
  }
}

/// Python's str, and its repr for what is inside of a list or dict.
inline std::string printed(const Value& value, Costs& costs, bool is_inner) {
  costs.step();
  std::string text;
  switch (value.kind()) {
    case Kind::undefined:
      if (is_inner) return "Undefined";
      return "";
    case Kind::none:
      return "None";
    case Kind::boolean:
      return value.flag() ? "True" : "False";
    case Kind::integer:
      return std::to_string(value.whole());
    case Kind::real:
      return printed(value.number());
    case Kind::text:
      costs.make(value.text().size());
      return is_inner ? represented(value.text()) : value.text();
    case Kind::list:
    case Kind::tuple:
    case Kind::dict:
      break;
    default:
      costs.fail("printing " + type_name(value) + " is not supported");
  }
  const bool is_tuple = value.is(Kind::tuple);
  text = value.is(Kind::dict) ? "{" : is_tuple ? "(" : "[";
  append_entries(text, value, costs);
  if (is_tuple && value.items().size() == 1) text += ',';
  text += value.is(Kind::dict) ? '}' : is_tuple ? ')' : ']';
  costs.make(text.size());
  return text;
}

/// Options of tojson, which are those of json.dumps.
struct JsonOptions {
  bool ascii = false;        ///< others than ASCII as \u escapes
  bool is_indented = false;  ///< each entry on a line of its own
  std::string indent;        ///< of a level
  std::string comma = ", ";  ///< between entries
  std::string colon = ": ";  ///< behind a name
  bool sorts = false;        ///< by the names
};

/// Writes JSON, as Python's json.dumps does.
class JsonWriter {
 public:
  JsonWriter(const JsonOptions& options, Costs& costs) : options_(options), costs_(costs) {}

  std::string write(const Value& value) {
    add(value, 0);
    return std::move(text_);
  }

 private:
  void add(const Value& value, int level) {
    const std::size_t before = text_.size();
    costs_.step();
    switch (value.kind()) {
      case Kind::none:
        text_ += "null";
        break;
      case Kind::boolean:
        text_ += value.flag() ? "true" : "false";
        break;
      case Kind::integer:
        text_ += std::to_string(value.whole());
        break;
      case Kind::real:
        text_ += printed(value.number(), true);
        break;
      case Kind::text:
        add_text(value.text());
        break;
      case Kind::list:
      case Kind::tuple:
        add_list(value.items(), level);
        break;
      case Kind::dict:
        add_dict(value.entries(), level);
        break;
      default:
        costs_.fail("tojson of " + type_name(value) + " is not possible");
    }
    if (level == 0 || value.levels() == 0) costs_.make(text_.size() - before);
  }
  void begin_entry(bool is_first, int level) {
    if (!is_first) text_ += options_.comma;
    costs_.make(options_.comma.size() + options_.colon.size());
    if (!options_.is_indented) return;
    costs_.make(options_.indent.size() * std::size_t(level));
    text_ += '\n';
    for (int i = 0; i < level; ++i) text_ += options_.indent;
  }
  void add_list(const Values& items, int level) {
    text_ += '[';
    for (const Value& each : items) {
      begin_entry(&each == &items[0], level + 1);
      add(each, level + 1);
    }
    if (!items.empty()) begin_entry(true, level);
    text_ += ']';
  }
  void add_dict(Entries entries, int level) {
    if (options_.sorts)
      std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
        return name_of(a.first) < name_of(b.first);
      });
    text_ += '{';
    for (const auto& entry : entries) {
      begin_entry(&entry == &entries[0], level + 1);
      add_text(name_of(entry.first));
      text_ += options_.colon;
      add(entry.second, level + 1);
    }
    if (!entries.empty()) begin_entry(true, level);
    text_ += '}';
  }
  std::string name_of(const Value& key) const {
    switch (key.kind()) {
      case Kind::text:
        return key.text();
      case Kind::none:
        return "null";
      case Kind::boolean:
        return key.flag() ? "true" : "false";
      case Kind::integer:
        return std::to_string(key.whole());
      case Kind::real:
        return printed(key.number(), true);
      default:
        costs_.fail("tojson: a name is " + type_name(key));
    }
  }
  void add_text(std::string_view text) {
    text_ += '"';
    for (const std::string_view each : characters(text)) {
      constexpr std::string_view marks = "\"\\\n\r\t\b\f", letters = "\"\\nrtbf";
      const auto point = static_cast<std::uint32_t>(first_point(each));
      const std::size_t known = marks.find(each[0]);
      if (known != marks.npos)
        (text_ += '\\') += letters[known];
      else if (point < 0x20 || (options_.ascii && point >= 0x7F && point < 0x10000))
        add_escape(point);
      else if (options_.ascii && point >= 0x10000)
        add_pair(point - 0x10000);
      else
        text_ += each;
    }
    text_ += '"';
  }
  void add_escape(std::uint32_t unit) { append_hexadecimal(text_ += "\\u", unit, 4); }
  void add_pair(std::uint32_t rest) {
    add_escape(0xD800 + (rest >> 10));
    add_escape(0xDC00 + (rest & 0x3FF));
  }

  const JsonOptions& options_;
  Costs& costs_;
  std::string text_;
};

}  // namespace fw::models::chat
