#pragma once

#include <stdexcept>
#include <string>

/// The message of the error that f throws. Another type of error continues.
template <class Error = std::invalid_argument, class F> std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}
