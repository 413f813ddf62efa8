#pragma once

#include <fastweights/models/chat_template/items.hpp>

/// \file
/// Methods of texts, lists and dicts.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

inline const std::string& text_of(const Value& value, const std::string& of, const Costs& costs) {
  if (!value.is(Kind::text)) costs.fail(of + " takes a text, given is " + type_name(value));
  return value.text();
}
inline std::int64_t whole_of(const Value& value, const std::string& of, std::int64_t otherwise,
                             const Costs& costs) {
  if (value.is(Kind::undefined)) return otherwise;
  if (!value.is_whole()) costs.fail(of + " takes a whole number, given is " + type_name(value));
  return value.whole();
}

/// The text with `old` replaced, `most` times; −1: everywhere.
inline std::string replaced(std::string_view text, std::string_view old, std::string_view by,
                            std::int64_t most, Costs& costs) {
  std::string result;
  const auto add = [&](std::string_view more) {
    costs.make(more.size());
    result += more;
  };
  std::size_t at = 0;
  for (; most != 0; --most) {
    std::size_t found = find(text, old, at);
    if (found == text.npos) break;
    add(text.substr(at, found - at));
    add(by);
    at = found + old.size();
    if (!old.empty()) continue;
    if (at == text.size()) return result;  // between all characters, and at both ends
    add(text.substr(at, first_bytes(text.substr(at))));
    at += first_bytes(text.substr(at));
  }
  add(text.substr(at));
  return result;
}

/// The parts of a text. Each counts as made, before there are too many.
class Parts {
 public:
  explicit Parts(Costs& costs) : costs_(costs) {}
  void add(std::string_view part) {
    costs_.make(sizeof(std::string) + part.size());
    all_.emplace_back(part);
  }
  std::vector<std::string> all() { return std::move(all_); }
  std::vector<std::string> reversed() { return {all_.rbegin(), all_.rend()}; }

 private:
  Costs& costs_;
  std::vector<std::string> all_;
};

/// The parts between spaces, at most `most` splits; −1: all.
inline std::vector<std::string> words(std::string_view text, std::int64_t most, Costs& costs) {
  Parts parts(costs);
  for (text = stripped(text, {}, true, false); !text.empty();
       text = stripped(text, {}, true, false)) {
    std::size_t n = 0;
    while (n < text.size() && !is_python_space(first_point(text.substr(n))))
      n += first_bytes(text.substr(n));
    if (most-- == 0) {
      parts.add(stripped(text, {}, false, true));
      break;
    }
    parts.add(text.substr(0, n));
    text.remove_prefix(n);
  }
  return parts.all();
}
/// The parts between separators.
inline std::vector<std::string> split(std::string_view text, std::string_view separator,
                                      std::int64_t most, Costs& costs) {
  Parts parts(costs);
  std::size_t at = 0;
  for (; most != 0; --most) {
    const std::size_t found = find(text, separator, at);
    if (found == text.npos) break;
    parts.add(text.substr(at, found - at));
    at = found + separator.size();
  }
  parts.add(text.substr(at));
  return parts.all();
}
/// The parts between separators, split from the end of the text.
inline std::vector<std::string> split_last(std::string_view text, std::string_view separator,
                                           std::int64_t most, Costs& costs) {
  Parts parts(costs);
  for (; most != 0; --most) {
    const std::size_t found = text.rfind(separator);
    if (found == text.npos) break;
    parts.add(text.substr(found + separator.size()));
    text = text.substr(0, found);
  }
  parts.add(text);
  return parts.reversed();
}
/// Python's splitlines.
inline std::vector<std::string> lines(std::string_view text, Costs& costs,
                                      bool keeps_ends = false) {
  Parts parts(costs);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = first_bytes(text.substr(i));
    const auto point = first_point(text.substr(i));
    const bool ends = (point >= 0x0A && point <= 0x0D) || (point >= 0x1C && point <= 0x1E) ||
                      point == 0x85 || point == 0x2028 || point == 0x2029;
    const std::size_t end = i;
    i += n;
    if (!ends) continue;
    if (point == '\r' && i < text.size() && text[i] == '\n') ++i;
    parts.add(text.substr(begin, (keeps_ends ? i : end) - begin));
    begin = i;
  }
  if (begin < text.size()) parts.add(text.substr(begin));
  return parts.all();
}

/// Methods of a text.
class TextMethods {
 public:
  TextMethods(const std::string& self, const std::string& name, const Arguments& given,
              Costs& costs)
      : self_(self), name_(name), given_(given), costs_(costs) {
    costs.make(self.size());  // what most methods copy
  }

  /// True if there is a method of this name. Others of Python's are not supported.
  static bool has(std::string_view name) {
    for (const std::string_view each :
         {"strip",      "lstrip",    "rstrip",  "split",   "rsplit",       "splitlines",
          "startswith", "endswith",  "replace", "upper",   "lower",        "title",
          "capitalize", "join",      "find",    "rfind",   "index",        "count",
          "isdigit",    "isspace",   "isupper", "islower", "removeprefix", "removesuffix",
          "partition",  "rpartition"})
      if (each == name) return true;
    return false;
  }

  Value call() {
    if (name_ == "upper") return text(upper(self_));
    if (name_ == "lower") return text(lower(self_));
    if (name_ == "title") return text(title(self_));
    if (name_ == "capitalize") return text(capitalised(self_));
    if (name_ == "strip" || name_ == "lstrip" || name_ == "rstrip") return strip();
    if (name_ == "split" || name_ == "rsplit") return split_text();
    if (name_ == "splitlines")
      return texts(lines(self_, costs_, is_true(arguments({"keepends"}, 0)[0])));
    if (name_ == "startswith" || name_ == "endswith") return affix();
    if (name_ == "replace") return replace();
    if (name_ == "join") return join();
    if (name_ == "removeprefix" || name_ == "removesuffix") return without_affix();
    if (name_ == "partition" || name_ == "rpartition") return partition();
    if (name_.starts_with("is")) return is_all();
    return place();
  }

 private:
  Values arguments(const std::vector<std::string>& names, std::size_t required) const {
    return bound(given_, name_, names, required, costs_);
  }
  const std::string& argument(const char* name) {
    kept_ = arguments({name}, 1)[0];
    return text_of(kept_, name_, costs_);
  }
  Value text(std::string text) const { return Value::text(std::move(text), costs_); }
  Value texts(const std::vector<std::string>& all, Kind kind = Kind::list) const {
    Values items;
    for (const std::string& each : all) items.push_back(text(each));
    return Value::list(std::move(items), costs_, kind);
  }

  Value strip() const {
    const Value set = arguments({"chars"}, 0)[0];
    const bool is_set = set.is(Kind::text);
    if (is_set && set.text().empty()) return text(self_);
    if (!is_set && !set.is(Kind::none) && !set.is(Kind::undefined)) text_of(set, name_, costs_);
    if (is_set) costs_.make(self_.size() / 64 * set.text().size());
    return text(std::string(stripped(self_, is_set ? std::string_view(set.text()) : "",
                                     name_ != "rstrip", name_ != "lstrip")));
  }
  Value split_text() const {
    const Values all = arguments({"sep", "maxsplit"}, 0);
    const std::int64_t most = whole_of(all[1], name_, -1, costs_);
    const bool from_end = name_ == "rsplit" && most >= 0;
    if (from_end && all[0].is(Kind::text)) search_from_end(all[0].text());
    if (!all[0].is(Kind::text)) {
      if (!all[0].is(Kind::none) && !all[0].is(Kind::undefined)) text_of(all[0], name_, costs_);
      if (from_end) costs_.fail("rsplit at spaces with a maxsplit is not supported");
      return texts(words(self_, most, costs_));
    }
    if (all[0].text().empty()) costs_.fail(name_ + " has an empty separator");
    return texts(from_end ? split_last(self_, all[0].text(), most, costs_)
                          : split(self_, all[0].text(), most, costs_));
  }
  // std::string::rfind may compare every place with the whole part.
  void search_from_end(const std::string& part) const {
    costs_.step(self_.size() / 16 * (part.size() / 16 + 1));
  }
  Value affix() const {
    const Values all = arguments({"prefix", "start", "end"}, 1);
    const auto or_none = [](const Value& v) { return v.is(Kind::undefined) ? Value::none() : v; };
    const Value part =
        slice_of(text(self_), or_none(all[1]), or_none(all[2]), Value::none(), costs_);
    const Values options = all[0].is(Kind::tuple) ? all[0].items() : Values{all[0]};
    return Value::boolean(std::any_of(options.begin(), options.end(), [&](const Value& each) {
      const std::string& given = text_of(each, name_, costs_);
      return name_ == "startswith" ? part.text().starts_with(given) : part.text().ends_with(given);
    }));
  }
  Value replace() const {
    const Values all = arguments({"old", "new", "count"}, 2);
    return text(replaced(self_, text_of(all[0], name_, costs_), text_of(all[1], name_, costs_),
                         whole_of(all[2], name_, -1, costs_), costs_));
  }
  Value join() const {
    std::string all;
    const Values parts = iterated(arguments({"iterable"}, 1)[0], costs_);
    for (const Value& each : parts) {
      costs_.make(self_.size() + text_of(each, name_, costs_).size());
      if (&each != &parts[0]) all += self_;
      all += each.text();
    }
    return text(std::move(all));
  }
  Value without_affix() {
    const std::string& affix = argument("affix");
    std::string_view rest = self_;
    if (name_ == "removeprefix" && rest.starts_with(affix)) rest.remove_prefix(affix.size());
    if (name_ == "removesuffix" && rest.ends_with(affix)) rest.remove_suffix(affix.size());
    return text(std::string(rest));
  }
  Value partition() {
    const std::string& separator = argument("sep");
    if (separator.empty()) costs_.fail(name_ + " has an empty separator");
    const bool first = name_ == "partition";
    if (!first) search_from_end(separator);
    const std::size_t at = first ? find(self_, separator) : self_.rfind(separator);
    if (at == std::string::npos)
      return first ? texts({self_, "", ""}, Kind::tuple) : texts({"", "", self_}, Kind::tuple);
    return texts({self_.substr(0, at), separator, self_.substr(at + separator.size())},
                 Kind::tuple);
  }
  Value is_all() const {
    arguments({}, 0);
    const auto all = characters(self_);
    const auto every = [&](const auto& f) {
      return Value::boolean(!all.empty() && std::all_of(all.begin(), all.end(), [&](auto each) {
        return f(first_point(each));
      }));
    };
    if (name_ == "isspace") return every(is_python_space);
    if (name_ == "isdigit")
      return every([](auto point) { return utf8proc_category(point) == UTF8PROC_CATEGORY_ND; });
    const bool has_case =
        std::any_of(all.begin(), all.end(), [](auto each) { return is_cased(first_point(each)); });
    return Value::boolean(has_case && (name_ == "isupper" ? upper(self_) : lower(self_)) == self_);
  }
  // Places are counted in characters.
  Value place() {
    const std::string& part = argument("sub");
    search_from_end(part);
    if (name_ == "count") {
      if (part.empty()) return Value::integer(std::int64_t(length(self_)) + 1);
      return Value::integer(std::int64_t(split(self_, part, -1, costs_).size()) - 1);
    }
    const std::size_t at = name_ == "rfind" ? self_.rfind(part) : find(self_, part);
    if (at == std::string::npos && name_ == "index") costs_.fail("index: the text is not there");
    return Value::integer(
        at == std::string::npos ? -1 : std::int64_t(length(std::string_view(self_).substr(0, at))));
  }

  const std::string &self_, &name_;
  const Arguments& given_;
  Costs& costs_;
  Value kept_;
};

/// True if a value has a method of this name, which a template may call.
inline bool has_method(const Value& value, std::string_view name) {
  const auto is_any = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (value.is(Kind::text)) return TextMethods::has(name);
  if (value.is(Kind::dict)) return is_any({"items", "keys", "values", "get", "copy"});
  if (value.is(Kind::list) || value.is(Kind::tuple)) return is_any({"index", "count"});
  return false;
}

/// Python's other methods. Those that change a list or dict are not there in transformers'
/// environment either.
inline bool is_method_of_python(const Value& value, std::string_view name) {
  const auto is_any = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (value.is(Kind::text))
    return is_any({"format",       "format_map",  "encode",  "casefold",   "swapcase",  "center",
                   "ljust",        "rjust",       "zfill",   "expandtabs", "translate", "maketrans",
                   "rindex",       "isalpha",     "isalnum", "isascii",    "isdecimal", "isnumeric",
                   "isidentifier", "isprintable", "istitle"});
  return value.is(Kind::dict) ? name == "fromkeys" : value.is(Kind::list) && name == "copy";
}
inline bool is_hidden_method(const Value& value, std::string_view name) {
  const auto is_any = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (value.is(Kind::dict)) return is_any({"clear", "pop", "popitem", "setdefault", "update"});
  return value.is(Kind::list) &&
         is_any({"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"});
}

inline Value call_dict_method(const Value& self, const std::string& name, const Arguments& given,
                              Costs& costs) {
  if (name == "get") {
    const Values all = bound(given, name, {"key", "default"}, 1, costs);
    if (const Value* entry = entry_of(self, all[0], costs)) return *entry;
    const bool has_default = given.positional.size() + given.named.size() > 1;
    return has_default ? all[1] : Value::none();
  }
  bound(given, name, {}, 0, costs);
  if (name == "copy") return self;
  if (name == "items") return Value::list(pairs_of(self.entries(), costs), costs, Kind::view);
  Values all;
  for (const auto& [key, value] : self.entries()) all.push_back(name == "keys" ? key : value);
  return Value::list(std::move(all), costs, Kind::view);
}

/// Calls a method that has_method says is there.
inline Value call_method(const Value& self, const std::string& name, const Arguments& given,
                         Costs& costs) {
  if (self.is_safe()) costs.fail("a method of a text of the filter safe is not supported");
  if (self.is(Kind::text)) return TextMethods(self.text(), name, given, costs).call();
  if (self.is(Kind::dict)) return call_dict_method(self, name, given, costs);
  const Value wanted = bound(given, name, {"value"}, 1, costs)[0];
  std::int64_t count = 0;
  for (std::size_t i = 0; i < self.items().size(); ++i) {
    if (!are_equal(self.items()[i], wanted, costs)) continue;
    if (name == "index") return Value::integer(std::int64_t(i));
    ++count;
  }
  if (name == "index") costs.fail("index: the value is not there");
  return Value::integer(count);
}

}  // namespace fw::models::chat
