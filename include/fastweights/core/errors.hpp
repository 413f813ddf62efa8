#pragma once

#include <Eigen/Core>
#include <cstdio>
#include <cstdlib>
#include <fastweights/core/abi.hpp>
#include <initializer_list>
#include <string>
#include <string_view>

/// \file
/// Errors of bad arguments: std::invalid_argument with the name of the thing, what was given and
/// what was expected.
///
/// Every error of the library ends in one function, which
/// - throws an exception, by default;
/// - prints the message to stderr and calls std::abort if the compiler has no exceptions
///   (-fno-exceptions);
/// - calls the program's own function if the macro FASTWEIGHTS_ERROR_HANDLER is its name:
///
///       // compiled with -DFASTWEIGHTS_ERROR_HANDLER=on_error
///       void on_error(const char* message) { ... }   // must not return
///
/// The function is in the global namespace. It may throw an exception of its own, abort or restart
/// the device; if it returns, the library calls std::abort. All sources of a program need the same
/// setting.

#if defined __cpp_exceptions || defined __EXCEPTIONS || defined _CPPUNWIND
#define FASTWEIGHTS_EXCEPTIONS 1
#else
#define FASTWEIGHTS_EXCEPTIONS 0
#endif

/// Compilers lay out the code so that a call of such a function is the slow path.
#if defined __GNUC__
#define FASTWEIGHTS_COLD [[gnu::cold]]
#else
#define FASTWEIGHTS_COLD
#endif

#ifdef FASTWEIGHTS_ERROR_HANDLER
void FASTWEIGHTS_ERROR_HANDLER(const char* message);
#endif

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Ends the call with an error: throws Error(message), aborts, or calls the program's function.
template <class Error> [[noreturn]] FASTWEIGHTS_COLD void raise(const std::string& message) {
#if defined FASTWEIGHTS_ERROR_HANDLER
  ::FASTWEIGHTS_ERROR_HANDLER(message.c_str());
  std::abort();
#elif FASTWEIGHTS_EXCEPTIONS
  throw Error(message);
#else
  std::fprintf(stderr, "%s\n", message.c_str());
  std::abort();
#endif
}

/// A number in a message: with six digits, or with as many as tell it from its neighbours, as a
/// float if it is one. No stream prints it: std::ostringstream brings the locales along, 400 KB of
/// a program for a device without an operating system.
std::string number_text(double number);

// These are cold and not inlined: a check that passes costs only a comparison.

/// Throws with a text of several parts.
[[noreturn]] FASTWEIGHTS_COLD void throw_invalid(std::initializer_list<std::string_view> parts);

/// Throws "rule: member has 3 rows, the memory expects 4".
[[noreturn]] FASTWEIGHTS_COLD void throw_mismatch(std::string_view rule, std::string_view member,
                                                  Eigen::Index given, const char* what,
                                                  Eigen::Index expected, const char* who);

/// Throws "owner: length is -1 in the state, expected 0 to 5"; `why` follows the expected number.
[[noreturn]] FASTWEIGHTS_COLD void throw_count(std::string_view owner, std::string_view member,
                                               Eigen::Index given, Eigen::Index least,
                                               Eigen::Index most, std::string_view why = {});

}  // namespace fw::detail

#ifndef FASTWEIGHTS_COMPILED
#include <fastweights/core/implementation/errors.hpp>
#endif
