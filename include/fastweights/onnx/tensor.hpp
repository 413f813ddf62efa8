#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cstddef>
#include <fastweights/core/errors.hpp>
#include <limits>
#include <string>
#include <string_view>

/// \file
/// Tensors of the caller, as ONNX has them.

namespace fw::inline FASTWEIGHTS_ABI::onnx {

using Eigen::Index;

/// A dense row-major tensor. It is absent if `data` is null.
template <class S, std::size_t rank> struct Tensor {
  S* data = nullptr;                   ///< the first element; null: the tensor is absent
  std::array<Index, rank> shape = {};  ///< rows of every axis; the last axis is contiguous
};

}  // namespace fw::onnx

namespace fw::inline FASTWEIGHTS_ABI::detail {

template <std::size_t rank> std::string shape_text(const std::array<Eigen::Index, rank>& shape) {
  std::string text;
  for (const Eigen::Index size : shape) text += (text.empty() ? "[" : ", ") + std::to_string(size);
  return text + "]";
}

/// True if an Index holds the bytes of a tensor, whose sizes are at least 0.
template <std::size_t rank>
bool fits_index(const std::array<Eigen::Index, rank>& shape, std::size_t bytes) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  Eigen::Index most = std::numeric_limits<Eigen::Index>::max() / static_cast<Eigen::Index>(bytes);
  for (const Eigen::Index size : shape) most /= size;  // floor by floor, so that nothing overflows
  return most > 0;
}

/// Throws std::invalid_argument if a tensor is absent, has neither of the shapes, or has more bytes
/// than an Index holds.
template <class S, std::size_t rank>
void check_tensor(std::string_view op, std::string_view name, const onnx::Tensor<S, rank>& tensor,
                  const std::array<Eigen::Index, rank>& shape,
                  const std::array<Eigen::Index, rank>& or_shape) {
  if (tensor.shape != shape && tensor.shape != or_shape) {
    const std::string other = shape == or_shape ? "" : " or " + shape_text(or_shape);
    throw_invalid({op, ": ", name, " has shape ", shape_text(tensor.shape), ", expected ",
                   shape_text(shape), other});
  }
  if (!fits_index(tensor.shape, sizeof(S)))
    throw_invalid({op, ": ", name, " has shape ", shape_text(tensor.shape),
                   ", more bytes than an index can count"});
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (tensor.data == nullptr && !empty) throw_invalid({op, ": ", name, " is absent"});
}
template <class S, std::size_t rank>
void check_tensor(std::string_view op, std::string_view name, const onnx::Tensor<S, rank>& tensor,
                  const std::array<Eigen::Index, rank>& shape) {
  check_tensor(op, name, tensor, shape, shape);
}

}  // namespace fw::detail
