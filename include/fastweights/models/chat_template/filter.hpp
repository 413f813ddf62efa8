#pragma once

#include <fastweights/models/chat_template/methods.hpp>
#include <fastweights/models/chat_template/tests.hpp>

/// \file
/// The parts that filters share.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// One application of a filter to a value.
class Filter {
 protected:
  Filter(const std::string& name, const Value& value, const Arguments& given, Costs& costs)
      : name_(name), value_(value), given_(given), costs_(costs) {}

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

  const std::string& name_;
  const Value& value_;
  const Arguments& given_;
  Costs& costs_;
};

}  // namespace fw::models::chat
