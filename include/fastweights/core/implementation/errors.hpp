#pragma once

#include <cstdio>
#include <cstdlib>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/implementation/inline.hpp>
#include <stdexcept>
#include <string>

/// \file
/// The functions of core/errors.hpp.

namespace fw::inline FASTWEIGHTS_ABI::detail {

EIGEN_DONT_INLINE FASTWEIGHTS_INLINE std::string number_text(double number) {
  const bool is_float = static_cast<double>(static_cast<float>(number)) == number;
  char text[32] = "";
  for (const int digits : {6, 9, 17}) {
    std::snprintf(text, sizeof text, "%.*g", digits, number);
    const double read = std::strtod(text, nullptr);
    if (is_float ? static_cast<float>(read) == static_cast<float>(number) : read == number) break;
  }
  for (char& c : text)
    if (c == ',') c = '.';  // a host may have set a locale with a decimal comma
  return text;
}

EIGEN_DONT_INLINE FASTWEIGHTS_INLINE void throw_invalid(
    std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  raise<std::invalid_argument>(text);
}

EIGEN_DONT_INLINE FASTWEIGHTS_INLINE void throw_mismatch(std::string_view rule,
                                                         std::string_view member,
                                                         Eigen::Index given, const char* what,
                                                         Eigen::Index expected, const char* who) {
  throw_invalid({rule, ": ", member, " has ", std::to_string(given), " ", what, ", ", who,
                 " expects ", std::to_string(expected)});
}

EIGEN_DONT_INLINE FASTWEIGHTS_INLINE void throw_count(std::string_view owner,
                                                      std::string_view member, Eigen::Index given,
                                                      Eigen::Index least, Eigen::Index most,
                                                      std::string_view why) {
  const std::string to = least == most ? "" : " to " + std::to_string(most);
  throw_invalid({owner, ": ", member, " is ", std::to_string(given), " in the state, expected ",
                 std::to_string(least), to, why});
}

}  // namespace fw::detail
