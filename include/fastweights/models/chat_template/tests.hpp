#pragma once

#include <fastweights/models/chat_template/items.hpp>

/// \file
/// Tests of values: {{ x is string }}.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// True if the value passes a test; nothing for a test that is not supported.
class Test {
 public:
  Test(const std::string& name, const Value& value, const Arguments& given, Costs& costs)
      : name_(name), value_(value), given_(given), costs_(costs) {}

  std::optional<bool> result() const {
    if (const auto known = of_kind()) return without_arguments(*known);
    if (const auto known = of_number()) return known;
    if (name_ == "lower" || name_ == "upper") {
      const std::string text = printed(value_, costs_);
      const bool has_case = upper(text) != lower(text);
      return without_arguments(has_case && (name_ == "upper" ? upper(text) : lower(text)) == text);
    }
    return with_other();
  }

 private:
  bool without_arguments(bool result) const {
    bound(given_, "the test " + name_, {}, 0, costs_);
    return result;
  }
  bool is(Kind kind) const { return value_.is(kind); }

  std::optional<bool> of_kind() const {
    if (name_ == "defined") return !is(Kind::undefined);
    if (name_ == "undefined") return is(Kind::undefined);
    if (name_ == "none") return is(Kind::none);
    if (name_ == "boolean") return is(Kind::boolean);
    if (name_ == "true") return is(Kind::boolean) && value_.flag();
    if (name_ == "false") return is(Kind::boolean) && !value_.flag();
    if (name_ == "integer") return is(Kind::integer);
    if (name_ == "float") return is(Kind::real);
    if (name_ == "number") return value_.is_number();
    if (name_ == "string") return is(Kind::text);
    if (name_ == "mapping") return is(Kind::dict);
    const bool is_indexed = is(Kind::text) || is(Kind::list) || is(Kind::tuple) || is(Kind::dict) ||
                            is(Kind::undefined);
    if (name_ == "sequence" && !is(Kind::view)) return is_indexed;
    if (name_ == "iterable") return is_indexed || is(Kind::view) || is(Kind::generator);
    if (name_ == "truth") return is_true(value_);
    return {};
  }
  std::optional<bool> of_number() const {
    if (name_ != "odd" && name_ != "even" && name_ != "divisibleby") return {};
    const bool divides = name_ == "divisibleby";
    const Values all = bound(given_, "the test " + name_, {"num"}, divides, costs_);
    const Value by = divides ? all[0] : Value::integer(2);
    const Value rest = operated("%", value_, by, costs_);
    return are_equal(rest, Value::integer(name_ == "odd"), costs_);
  }
  std::optional<bool> with_other() const {
    const auto other = [&] { return bound(given_, "the test " + name_, {"other"}, 1, costs_)[0]; };
    const auto named = [&](std::initializer_list<const char*> names) {
      return std::find(names.begin(), names.end(), name_) != names.end();
    };
    if (named({"eq", "equalto", "=="})) return are_equal(value_, other(), costs_);
    if (named({"ne", "!="})) return !are_equal(value_, other(), costs_);
    if (named({"lt", "lessthan", "<"})) return is_less(value_, other(), costs_);
    if (named({"gt", "greaterthan", ">"})) return is_less(other(), value_, costs_);
    if (named({"le", "<="})) return !is_less(other(), value_, costs_);
    if (named({"ge", ">="})) return !is_less(value_, other(), costs_);
    if (named({"in"})) return is_in(value_, other(), costs_);
    if (named({"sameas"}) && (value_.is(Kind::none) || value_.is(Kind::boolean)))
      return value_.is_same(other());
    return {};
  }

  const std::string& name_;
  const Value& value_;
  const Arguments& given_;
  Costs& costs_;
};

inline bool passes(const std::string& name, const Value& value, const Arguments& given,
                   Costs& costs) {
  costs.step();
  const auto result = Test(name, value, given, costs).result();
  if (!result) costs.fail("the test " + name + " of " + type_name(value) + " is not supported");
  return *result;
}

}  // namespace fw::models::chat
