#pragma once

#include <fastweights/models/chat_template/filter.hpp>

/// \file
/// Filters of texts, numbers and any value.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// One application of a filter. Filters of texts, numbers and any value.
class ValueFilter : Filter {
 public:
  ValueFilter(const std::string& name, const Value& value, const Arguments& given, Costs& costs)
      : Filter(name, value, given, costs) {}

  /// The value behind the filter, or nothing if it is none of these.
  std::optional<Value> result() const {
    using Member = Value (ValueFilter::*)() const;
    static const std::map<std::string_view, Member> all{
        {"abs", &ValueFilter::absolute},   {"capitalize", &ValueFilter::cased},
        {"d", &ValueFilter::otherwise},    {"default", &ValueFilter::otherwise},
        {"float", &ValueFilter::to_float}, {"format", &ValueFilter::format},
        {"indent", &ValueFilter::indent},  {"int", &ValueFilter::to_int},
        {"lower", &ValueFilter::cased},    {"replace", &ValueFilter::replace},
        {"round", &ValueFilter::round},    {"safe", &ValueFilter::safe},
        {"string", &ValueFilter::string},  {"title", &ValueFilter::cased},
        {"tojson", &ValueFilter::tojson},  {"trim", &ValueFilter::trim},
        {"upper", &ValueFilter::cased}};
    const auto found = all.find(name_);
    if (found == all.end()) return {};
    return (this->*found->second)();
  }

 private:
  Value absolute() const {
    arguments({});
    if (!value_.is_number()) costs_.fail("abs of " + type_name(value_) + " is not possible");
    if (value_.is(Kind::real)) return Value::real(std::abs(value_.number()));
    return value_.whole() < 0 ? operated("-", Value::integer(0), value_, costs_)
                              : Value::integer(value_.whole());
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
  Value otherwise() const {
    const Values all = arguments({"default_value", "boolean"});
    const bool replaces = is_given(all[1]) && is_true(all[1]) && !is_true(value_);
    if (is_given(value_) && !replaces) return value_;
    return is_given(all[0]) || !given_.positional.empty() ? all[0] : text("");
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
    const auto rows =
        lines(own_text() + "\n", costs_);  // an end of its own is a line that is empty
    std::string result;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool indents = i == 0 ? is_true(all[1]) : is_true(all[2]) || !rows[i].empty();
      costs_.make(rows[i].size() + by.size());
      result += (i > 0 ? "\n" : "") + (indents ? by : std::string()) + rows[i];
    }
    return text(std::move(result));
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
};

}  // namespace fw::models::chat
