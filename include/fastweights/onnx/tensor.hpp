#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <fastweights/core/errors.hpp>
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

/// Throws std::invalid_argument if a tensor is absent or has neither of the shapes.
template <class S, std::size_t rank>
void check_tensor(std::string_view op, std::string_view name, const onnx::Tensor<S, rank>& tensor,
                  const std::array<Eigen::Index, rank>& shape,
                  const std::array<Eigen::Index, rank>& or_shape) {
  if (tensor.shape != shape && tensor.shape != or_shape) {
    const std::string other = shape == or_shape ? "" : " or " + shape_text(or_shape);
    throw_invalid({op, ": ", name, " has shape ", shape_text(tensor.shape), ", expected ",
                   shape_text(shape), other});
  }
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (tensor.data == nullptr && !empty) throw_invalid({op, ": ", name, " is absent"});
}
template <class S, std::size_t rank>
void check_tensor(std::string_view op, std::string_view name, const onnx::Tensor<S, rank>& tensor,
                  const std::array<Eigen::Index, rank>& shape) {
  check_tensor(op, name, tensor, shape, shape);
}

}  // namespace fw::detail
