#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>

/// \file
/// Paths of Python: str, bytes or os.PathLike, with any bytes that a name of a file can have.

namespace fw::python {

namespace nb = nanobind;

/// The bytes of a path. Throws nb::value_error if one of them is 0.
std::string path_bytes(nb::handle path);

/// Throws an error of Python. Bytes of a path in its text need not be UTF-8.
[[noreturn]] void throw_decoded(nb::handle type, const char* text);

/// f(bytes of the path), with its errors decoded.
template <class F> auto with_path(nb::handle path, const F& f) {
  const std::string bytes = path_bytes(path);
  try {
    return f(bytes);
  } catch (const nb::builtin_exception& e) {
    throw_decoded(PyExc_ValueError, e.what());
  } catch (const std::runtime_error& e) {
    throw_decoded(PyExc_RuntimeError, e.what());
  }
}

}  // namespace fw::python
