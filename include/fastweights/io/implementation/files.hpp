/// The two functions of the operating system that files need, and the only place that asks which
/// system it is.
///
/// - `files::open(path)`: a ByteSource of a regular file.
/// - `files::replace(path, parts)`: a file of these parts takes the place of `path`.
/// Empty if FASTWEIGHTS_FILES is 0.
#pragma once

#include "fastweights/io/safetensors_format.hpp"

#if FASTWEIGHTS_FILES

#include <filesystem>

#if defined __unix__ || defined __APPLE__
#include "fastweights/io/implementation/posix_files.hpp"
#else
#include "fastweights/io/implementation/standard_files.hpp"
#endif

namespace fw::inline FASTWEIGHTS_ABI::io::detail {

#if defined __unix__ || defined __APPLE__
namespace files = posix;
#else
namespace files = standard;
#endif

}  // namespace fw::io::detail

#endif
