#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <Eigen/Core>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Arrays of Python: what NumPy, PyTorch and others give through DLPack or the buffer protocol.
/// Inputs are viewed, never copied. Results are new arrays of NumPy or PyTorch.

namespace fw::python {

namespace nb = nanobind;
using Eigen::Index;
using DType = nb::dlpack::dtype;

/// An array [batch, time, heads, rows], or [batch, time, heads] of numbers: where it begins, and
/// its strides in entries. The rows of one token are contiguous.
struct Sequences {
  void* data = nullptr;
  Index batch_stride = 0, time_stride = 0, head_stride = 0;

  template <class S> S* head(Index batch, Index head) const {
    return static_cast<S*>(data) + batch * batch_stride + head * head_stride;
  }
};

/// The array that an argument must be. A negative number of streams or tokens may be any.
struct Expected {
  std::string_view owner, name;
  DType dtype;
  Index batch = -1, time = -1, heads = 1, rows = 1;
  bool is_number = false;  // one per token: no axis of rows
  bool has_time = true;    // false for one token per stream
};

/// A checked argument; keeps the Python array alive.
struct Input {
  nb::ndarray<nb::ro> array;
  Sequences view;
  Index batch = 0, time = 1;
};

/// Throws nb::type_error unless `argument` is an array on the CPU of the expected type, and
/// nb::value_error unless its shape and strides fit. Both name owner, argument, what was expected
/// and what was given.
Input read_input(nb::handle argument, const Expected& expected);

/// An array in row-major or other order, with memory of its own: all zeros.
struct Result {
  nb::object owner;
  void* data = nullptr;
  DType dtype;
  std::vector<std::size_t> shape;
  std::vector<std::int64_t> strides;

  Result(DType type, std::vector<std::size_t> sizes);
  /// A torch.Tensor if `like` is one, else a numpy.ndarray.
  nb::object to_python(nb::handle like) const;
};

/// The shape of an argument whose batch and time are known.
std::vector<std::size_t> shape_of(const Expected& expected);
/// A result that an argument of the same expectation could be. Numbers of one head are contiguous,
/// so that threads do not write to the same cache lines.
Result result_for(const Expected& expected);
Sequences view_of(const Result& result, const Expected& expected);

/// "[2, 10, 8, 64]"
std::string shape_text(const std::vector<std::size_t>& shape);
std::vector<std::size_t> shape_of(const nb::ndarray<nb::ro>& array);
std::string dtype_text(DType dtype);

/// True if torch is loaded and `object` is one of its tensors.
bool is_tensor(nb::handle object);

/// The array in `argument`, on the CPU, of the type and with entries in memory as they are, else
/// nb::type_error.
nb::ndarray<nb::ro> read_array(nb::handle argument, std::string_view owner, std::string_view name,
                               DType dtype);

}  // namespace fw::python
