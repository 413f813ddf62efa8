#pragma once

#include <fastweights/core/abi.hpp>

/// \file
/// The version of the library, which CMake and Conan read here. For the preprocessor:
///
///     #if FASTWEIGHTS_VERSION_MAJOR == 0 && FASTWEIGHTS_VERSION_MINOR < 2
///
/// CONTRIBUTING.md says what a version promises.

/// The first number of the version.
#define FASTWEIGHTS_VERSION_MAJOR 0
/// The second number of the version.
#define FASTWEIGHTS_VERSION_MINOR 2
/// The third number of the version.
#define FASTWEIGHTS_VERSION_PATCH 0

// Two macros, because # does not expand its argument.
#define FASTWEIGHTS_DOTTED(major, minor, patch) #major "." #minor "." #patch
#define FASTWEIGHTS_VERSION_TEXT(major, minor, patch) FASTWEIGHTS_DOTTED(major, minor, patch)

namespace fw::inline FASTWEIGHTS_ABI {

/// The version as text, "major.minor.patch".
inline constexpr const char* version = FASTWEIGHTS_VERSION_TEXT(
    FASTWEIGHTS_VERSION_MAJOR, FASTWEIGHTS_VERSION_MINOR, FASTWEIGHTS_VERSION_PATCH);

}  // namespace fw

#undef FASTWEIGHTS_DOTTED
#undef FASTWEIGHTS_VERSION_TEXT
