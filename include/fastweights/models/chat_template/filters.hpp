#pragma once

#include <fastweights/models/chat_template/list_filters.hpp>
#include <fastweights/models/chat_template/value_filters.hpp>

/// \file
/// Filters of values: {{ x | trim }}.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// The value behind a filter.
inline Value filtered(const std::string& name, const Value& value, const Arguments& given,
                      Costs& costs) {
  costs.step();
  if (const auto result = ValueFilter(name, value, given, costs).result()) return *result;
  if (const auto result = ListFilter(name, value, given, costs, filtered).result()) return *result;
  costs.fail("the filter " + name + " is not supported");
}

}  // namespace fw::models::chat
