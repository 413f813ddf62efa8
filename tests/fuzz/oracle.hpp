#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fastweights/io/safetensors.hpp>
#include <string_view>

/// \file
/// The duty of a fuzzed program: throw SafeTensorsError with a short message, or answer.

namespace fuzz {

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "ORACLE: %s\n", what);
  std::abort();
}

inline void require(bool holds, const char* what) {
  if (!holds) fail(what);
}

/// Returns whether f ran without an error. Any other exception than SafeTensorsError ends the run.
template <class F> bool succeeds(const F& f) {
  try {
    f();
    return true;
  } catch (const fw::io::SafeTensorsError& error) {
    const std::string_view message = error.what();
    require(message.size() <= 200, "a message of more than 200 bytes");
    require(message.starts_with("the file: ") || message.starts_with("safetensors: "),
            "a message without the file's name");
    return false;
  }
}

inline bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace fuzz
