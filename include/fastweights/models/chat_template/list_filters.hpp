#pragma once

#include <fastweights/models/chat_template/filter.hpp>
#include <functional>

/// \file
/// Filters of lists and dicts.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// Applies a filter of any name.
using AnyFilter = Value (*)(const std::string& name, const Value& value, const Arguments& given,
                            Costs& costs);

/// One application of a filter. Filters of lists and dicts.
class ListFilter : Filter {
 public:
  /// `any` is what map applies.
  ListFilter(const std::string& name, const Value& value, const Arguments& given, Costs& costs,
             AnyFilter any)
      : Filter(name, value, given, costs), any_(any) {}

  /// The value behind the filter, or nothing if it is none of these.
  std::optional<Value> result() const {
    using Member = Value (ListFilter::*)() const;
    static const std::map<std::string_view, Member> all{{"batch", &ListFilter::batch},
                                                        {"count", &ListFilter::count},
                                                        {"dictsort", &ListFilter::sorted_dict},
                                                        {"first", &ListFilter::first},
                                                        {"items", &ListFilter::items},
                                                        {"join", &ListFilter::join},
                                                        {"last", &ListFilter::last},
                                                        {"length", &ListFilter::count},
                                                        {"list", &ListFilter::list},
                                                        {"map", &ListFilter::map},
                                                        {"max", &ListFilter::extreme},
                                                        {"min", &ListFilter::extreme},
                                                        {"reject", &ListFilter::select},
                                                        {"rejectattr", &ListFilter::select},
                                                        {"reverse", &ListFilter::reverse},
                                                        {"select", &ListFilter::select},
                                                        {"selectattr", &ListFilter::select},
                                                        {"sort", &ListFilter::sort},
                                                        {"sum", &ListFilter::sum},
                                                        {"unique", &ListFilter::unique}};
    const auto found = all.find(name_);
    if (found == all.end()) return {};
    return (this->*found->second)();
  }

 private:
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
  Value count() const {
    arguments({});
    return Value::integer(std::int64_t(size_of(value_, costs_)));
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
  // The key to sort and compare by: texts without case, unless it counts.
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
    for (const std::string& each : split(attribute.text(), ",", -1, costs_))
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
    for (const Value& each : own_items()) results.push_back(any_(name, each, rest, costs_));
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

  AnyFilter any_;
};

}  // namespace fw::models::chat
