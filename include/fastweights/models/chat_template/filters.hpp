#pragma once

#include <fastweights/models/chat_template/methods.hpp>
#include <fastweights/models/chat_template/tests.hpp>
#include <functional>

/// \file
/// Filters of values: {{ x | trim }}.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

inline Value filtered(const std::string& name, const Value& value, const Arguments& given,
                      Costs& costs);

/// One application of a filter.
class Filter {
 public:
  Filter(const std::string& name, const Value& value, const Arguments& given, Costs& costs)
      : name_(name), value_(value), given_(given), costs_(costs) {}

  Value result() {
    using Member = Value (Filter::*)() const;
    static const std::map<std::string_view, Member> all{{"abs", &Filter::absolute},
                                                        {"batch", &Filter::batch},
                                                        {"capitalize", &Filter::cased},
                                                        {"count", &Filter::count},
                                                        {"d", &Filter::otherwise},
                                                        {"default", &Filter::otherwise},
                                                        {"dictsort", &Filter::sorted_dict},
                                                        {"first", &Filter::first},
                                                        {"float", &Filter::to_float},
                                                        {"format", &Filter::format},
                                                        {"indent", &Filter::indent},
                                                        {"int", &Filter::to_int},
                                                        {"items", &Filter::items},
                                                        {"join", &Filter::join},
                                                        {"last", &Filter::last},
                                                        {"length", &Filter::count},
                                                        {"list", &Filter::list},
                                                        {"lower", &Filter::cased},
                                                        {"map", &Filter::map},
                                                        {"max", &Filter::extreme},
                                                        {"min", &Filter::extreme},
                                                        {"reject", &Filter::select},
                                                        {"rejectattr", &Filter::select},
                                                        {"replace", &Filter::replace},
                                                        {"reverse", &Filter::reverse},
                                                        {"round", &Filter::round},
                                                        {"safe", &Filter::safe},
                                                        {"select", &Filter::select},
                                                        {"selectattr", &Filter::select},
                                                        {"sort", &Filter::sort},
                                                        {"string", &Filter::string},
                                                        {"sum", &Filter::sum},
                                                        {"title", &Filter::cased},
                                                        {"tojson", &Filter::tojson},
                                                        {"trim", &Filter::trim},
                                                        {"unique", &Filter::unique},
                                                        {"upper", &Filter::cased}};
    const auto found = all.find(name_);
    if (found == all.end()) costs_.fail("the filter " + name_ + " is not supported");
    return (this->*found->second)();
  }

 private:
  Values arguments(const std::vector<std::string>& names, std::size_t required = 0) const {
    return bound(given_, "the filter " + name_, names, required, costs_);
  }
  static bool is_given(const Value& v) { return !v.is(Kind::undefined); }
  Value text(std::string text) const { return Value::text(std::move(text), costs_); }
  Value generator(Values items) const {
    return Value::list(std::move(items), costs_, Kind::generator);
  }
  std::string own_text() const { return printed(value_, costs_); }
  Values own_items() const { return iterated(value_, costs_); }

  Value absolute() const {
    arguments({});
    if (!value_.is_number()) costs_.fail("abs of " + type_name(value_) + " is not possible");
    if (value_.is(Kind::real)) return Value::real(std::abs(value_.number()));
    return value_.whole() < 0 ? operated("-", Value::integer(0), value_, costs_)
                              : Value::integer(value_.whole());
  }
  Value batch() const {
    const Values all = arguments({"linecount", "fill_with"}, 1);
    const std::int64_t size = whole_of(all[0], name_, 0, costs_);
    if (size < 1) costs_.fail("batch: linecount is expected to be at least 1");
    Values batches, now;
    for (const Value& each : own_items()) {
      now.push_back(each);
      if (std::int64_t(now.size()) < size) continue;
      batches.push_back(Value::list(std::exchange(now, {}), costs_));
    }
    if (!now.empty()) {
      if (is_given(all[1]) && !all[1].is(Kind::none)) {
        costs_.step(std::size_t(size));
        now.resize(std::size_t(size), all[1]);
      }
      batches.push_back(Value::list(std::move(now), costs_));
    }
    return generator(std::move(batches));
  }
  Value cased() const {
    arguments({});
    const std::string own = own_text();
    if (name_ == "upper") return text(upper(own));
    if (name_ == "lower") return text(lower(own));
    if (name_ == "capitalize") return text(capitalised(own));
    std::string result, word;  // jinja's title: words end at spaces, -, (, {, [ and <
    for (const std::string_view each : characters(own)) {
      const bool ends = is_python_space(first_point(each)) ||
                        std::string_view("-({[<").find(each[0]) != std::string_view::npos;
      if (ends) result += capitalised(std::exchange(word, {}));
      (ends ? result : word) += each;
    }
    return text(result + capitalised(word));
  }
  Value count() const {
    arguments({});
    return Value::integer(std::int64_t(size_of(value_, costs_)));
  }
  Value otherwise() const {
    const Values all = arguments({"default_value", "boolean"});
    const bool replaces = is_given(all[1]) && is_true(all[1]) && !is_true(value_);
    if (is_given(value_) && !replaces) return value_;
    return is_given(all[0]) || !given_.positional.empty() ? all[0] : text("");
  }
  Value first() const {
    arguments({});
    const Values all = own_items();
    return all.empty() ? Value::undefined("the first entry") : all.front();
  }
  Value last() const {
    arguments({});
    if (value_.is(Kind::generator)) costs_.fail("last of a generator is not possible");
    const Values all = own_items();
    return all.empty() ? Value::undefined("the last entry") : all.back();
  }
  Value list() const {
    arguments({});
    return Value::list(own_items(), costs_);
  }
  Value string() const {
    arguments({});
    return value_.is_safe() ? value_ : text(own_text());
  }
  Value safe() const {
    arguments({});
    return text(own_text()).safe();
  }
  Value trim() const {
    const Values all = arguments({"chars"});
    Arguments chars;
    if (is_given(all[0])) chars.positional.push_back(all[0]);
    const std::string own = own_text();
    return TextMethods(own, "strip", chars, costs_).call();
  }
  Value replace() const {
    const Values all = arguments({"old", "new", "count"}, 2);
    const std::int64_t most = all[2].is(Kind::none) ? -1 : whole_of(all[2], name_, -1, costs_);
    return text(
        replaced(own_text(), printed(all[0], costs_), printed(all[1], costs_), most, costs_));
  }
  Value format() const {
    if (!given_.named.empty()) costs_.fail("the filter format with names is not supported");
    return formatted(text(own_text()), Value::list(given_.positional, costs_, Kind::tuple), costs_);
  }
  Value to_int() const {
    const Values all = arguments({"default", "base"});
    if (is_given(all[1]) && !are_equal(all[1], Value::integer(10), costs_))
      costs_.fail("the filter int with another base than 10 is not supported");
    if (const auto whole = to_whole(value_, costs_)) return Value::integer(*whole);
    return is_given(all[0]) ? all[0] : Value::integer(0);
  }
  Value to_float() const {
    const Values all = arguments({"default"});
    if (value_.is(Kind::undefined)) costs_.fail(type_name(value_) + ", is no number");
    if (value_.is_number()) return Value::real(value_.number());
    if (value_.is(Kind::text))
      if (const auto number = number_of<double>(value_.text())) return Value::real(*number);
    return is_given(all[0]) ? all[0] : Value::real(0);
  }
  Value round() const {
    const Values all = arguments({"precision", "method"});
    const std::int64_t digits = whole_of(all[0], name_, 0, costs_);
    const std::string method = is_given(all[1]) ? text_of(all[1], name_, costs_) : "common";
    if (!value_.is_number() || digits < 0 || digits > 15 ||
        (method == "common" && digits > 0 && value_.is(Kind::real)))
      costs_.fail("the filter round of " + type_name(value_) +
                  " with these digits is not supported");
    const double scale = std::pow(10.0, double(digits)), x = value_.number();
    if (method == "common" && value_.is_whole()) return Value::integer(value_.whole());
    if (method == "common") return Value::real(std::nearbyint(x));
    if (method != "ceil" && method != "floor")
      costs_.fail("round: method is " + method + ", expected common, ceil or floor");
    return Value::real((method == "ceil" ? std::ceil(x * scale) : std::floor(x * scale)) / scale);
  }
  Value indent() const {
    const Values all = arguments({"width", "first", "blank"});
    const bool is_text = all[0].is(Kind::text);
    const std::int64_t width = is_text ? 0 : whole_of(all[0], name_, 4, costs_);
    costs_.make(std::size_t(std::clamp<std::int64_t>(width, 0, Bounds::made_bytes)));
    const std::string by =
        is_text ? all[0].text() : std::string(std::size_t(std::max<std::int64_t>(0, width)), ' ');
    const auto rows = lines(own_text() + "\n");  // an end of its own is a line that is empty
    std::string result;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool indents = i == 0 ? is_true(all[1]) : is_true(all[2]) || !rows[i].empty();
      costs_.make(rows[i].size() + by.size());
      result += (i > 0 ? "\n" : "") + (indents ? by : std::string()) + rows[i];
    }
    return text(std::move(result));
  }
  Value items() const {
    arguments({});
    if (value_.is(Kind::undefined)) return generator({});
    if (!value_.is(Kind::dict)) costs_.fail("items of " + type_name(value_) + ", expected a dict");
    return generator(pairs_of(value_.entries(), costs_));
  }
  Value join() const {
    const Values all = arguments({"d", "attribute"});
    const std::string separator = is_given(all[0]) ? printed(all[0], costs_) : "";
    std::string result;
    bool is_first = true;
    for (const Value& each : own_items()) {
      const Value part = is_given(all[1]) ? path_of(each, all[1], costs_) : each;
      const std::string more = printed(part, costs_);
      costs_.make(separator.size() + more.size());
      if (!std::exchange(is_first, false)) result += separator;
      result += more;
    }
    return text(std::move(result));
  }

  // What is sorted and compared: texts without case, unless it counts.
  Value sort_key(const Value& value, const Value& attribute, bool with_case) const {
    const bool has_attribute = is_given(attribute) && !attribute.is(Kind::none);
    const Value key = has_attribute ? path_of(value, attribute, costs_) : value;
    return key.is(Kind::text) && !with_case ? text(lower(key.text())) : key;
  }
  // Several attributes are keys after one another.
  Value sort_keys(const Value& value, const Value& attribute, bool with_case) const {
    if (!attribute.is(Kind::text) || attribute.text().find(',') == std::string::npos)
      return sort_key(value, attribute, with_case);
    Values keys;
    for (const std::string& each : split(attribute.text(), ",", -1))
      keys.push_back(sort_key(value, text(each), with_case));
    return Value::list(std::move(keys), costs_);
  }
  Values sorted(Values all, const std::function<Value(const Value&)>& key, bool reverses) const {
    std::vector<std::pair<Value, Value>> keyed;
    for (Value& each : all) keyed.emplace_back(key(each), std::move(each));
    costs_.make(keyed.size() * 2 * sizeof(Value));
    std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
      return reverses ? is_less(b.first, a.first, costs_) : is_less(a.first, b.first, costs_);
    });
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::move(keyed[i].second);
    return all;
  }
  Value sort() const {
    const Values all = arguments({"reverse", "case_sensitive", "attribute"});
    return Value::list(
        sorted(
            own_items(),
            [&](const Value& each) { return sort_keys(each, all[2], is_true(all[1])); },
            is_true(all[0])),
        costs_);
  }
  Value sorted_dict() const {
    const Values all = arguments({"case_sensitive", "by", "reverse"});
    if (!value_.is(Kind::dict))
      costs_.fail("dictsort of " + type_name(value_) + ", expected a dict");
    const std::string by = is_given(all[1]) ? text_of(all[1], name_, costs_) : "key";
    if (by != "key" && by != "value")
      costs_.fail("dictsort: by is " + by + ", expected key or value");
    const Value place = Value::integer(by == "value");
    return Value::list(
        sorted(
            pairs_of(value_.entries(), costs_),
            [&](const Value& pair) { return sort_key(pair, place, is_true(all[0])); },
            is_true(all[2])),
        costs_);
  }
  Value extreme() const {
    const Values all = arguments({"case_sensitive", "attribute"});
    Value best = Value::undefined("the value of an empty list"), best_key;
    bool is_first = true;
    for (const Value& each : own_items()) {
      const Value key = sort_key(each, all[1], is_true(all[0]));
      const bool is_better = is_first || (name_ == "min" ? is_less(key, best_key, costs_)
                                                         : is_less(best_key, key, costs_));
      is_first = false;
      if (!is_better) continue;
      best = each;
      best_key = key;
    }
    return best;
  }
  Value sum() const {
    const Values all = arguments({"attribute", "start"});
    Value result = is_given(all[1]) ? all[1] : Value::integer(0);
    const bool has_path = is_given(all[0]) && !all[0].is(Kind::none);
    for (const Value& each : own_items())
      result = operated("+", result, has_path ? path_of(each, all[0], costs_) : each, costs_);
    return result;
  }
  Value unique() const {
    const Values all = arguments({"case_sensitive", "attribute"});
    Values kept, keys;
    for (const Value& each : own_items()) {
      const Value key = sort_key(each, all[1], is_true(all[0]));
      if (std::any_of(keys.begin(), keys.end(),
                      [&](const Value& other) { return are_equal(key, other, costs_); }))
        continue;
      keys.push_back(key);
      kept.push_back(each);
    }
    return generator(std::move(kept));
  }
  Value reverse() const {
    arguments({});
    Values all = own_items();
    std::reverse(all.begin(), all.end());
    if (!value_.is(Kind::text)) return generator(std::move(all));
    std::string result;
    for (const Value& each : all) result += each.text();
    return text(std::move(result));
  }

  // map(attribute='a') and map('filter', …).
  Value map() const {
    Values results;
    const auto is_named = [&](const char* name) {
      return !given_.named.empty() && given_.named[0].first == name;
    };
    if (given_.positional.empty() && is_named("attribute")) {
      const Values all = arguments({"attribute", "default"});
      if (!is_true(value_)) return generator({});
      for (const Value& each : own_items()) {
        const Value part = path_of(each, all[0], costs_);
        results.push_back(is_given(part) ? part : all[1]);
      }
      return generator(std::move(results));
    }
    if (!is_true(value_)) return generator({});
    const auto [name, rest] = inner("map", 0);
    for (const Value& each : own_items()) results.push_back(filtered(name, each, rest, costs_));
    return generator(std::move(results));
  }
  // The name of an inner filter or test, and its arguments.
  std::pair<std::string, Arguments> inner(const std::string& name, std::size_t at) const {
    if (given_.positional.size() <= at)
      costs_.fail("the filter " + name + ": the name of an inner one is missing");
    Arguments rest = given_;
    rest.positional.erase(rest.positional.begin(),
                          rest.positional.begin() + std::ptrdiff_t(at) + 1);
    return {text_of(given_.positional[at], name, costs_), rest};
  }
  // select, reject, selectattr and rejectattr.
  Value select() const {
    const bool has_path = name_.ends_with("attr"), keeps = name_.starts_with("select");
    const std::size_t at = has_path ? 1 : 0;
    if (given_.positional.size() < at)
      costs_.fail("the filter " + name_ + ": the name of an attribute is missing");
    std::pair<std::string, Arguments> test{"truth", {}};
    if (given_.positional.size() > at) test = inner(name_, at);
    Values kept;
    if (!is_true(value_)) return generator({});
    for (const Value& each : own_items()) {
      const Value tested = has_path ? path_of(each, given_.positional[0], costs_) : each;
      if (passes(test.first, tested, test.second, costs_) == keeps) kept.push_back(each);
    }
    return generator(std::move(kept));
  }

  Value tojson() const {
    const Values all = arguments({"ensure_ascii", "indent", "separators", "sort_keys"});
    JsonOptions options;
    options.ascii = is_true(all[0]);
    options.sorts = is_true(all[3]);
    options.is_indented = is_given(all[1]) && !all[1].is(Kind::none);
    if (options.is_indented) {
      options.comma = ",";
      const bool is_text = all[1].is(Kind::text);
      const std::int64_t width = is_text ? 0 : whole_of(all[1], name_, 0, costs_);
      if (width > 1024)
        costs_.fail("tojson: indent is " + std::to_string(width) + ", expected at most 1024");
      options.indent =
          is_text ? all[1].text() : std::string(std::size_t(std::max<std::int64_t>(width, 0)), ' ');
    }
    if (is_given(all[2]) && !all[2].is(Kind::none)) {
      if (!all[2].has_items() || all[2].items().size() != 2)
        costs_.fail("tojson: separators are expected to be two texts");
      options.comma = text_of(all[2].items()[0], name_, costs_);
      options.colon = text_of(all[2].items()[1], name_, costs_);
    }
    return text(JsonWriter(options, costs_).write(value_));
  }

  const std::string& name_;
  const Value& value_;
  const Arguments& given_;
  Costs& costs_;
};

/// The value behind a filter.
inline Value filtered(const std::string& name, const Value& value, const Arguments& given,
                      Costs& costs) {
  costs.step();
  return Filter(name, value, given, costs).result();
}

}  // namespace fw::models::chat
