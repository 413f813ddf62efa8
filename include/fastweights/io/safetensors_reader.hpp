/// Strict reading of safetensors: see safetensors.hpp for the format and an example.
#pragma once

#include <Eigen/Core>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fastweights/core/leaves.hpp"
#include "fastweights/io/byte_source.hpp"
#include "fastweights/io/safetensors_format.hpp"

#if FASTWEIGHTS_FILES
#include <filesystem>
#endif

namespace fw::inline FASTWEIGHTS_ABI::io {

/// A dense Eigen object whose coefficients may be assigned.
template <class Target>
concept WritableDense =
    !std::is_const_v<std::remove_reference_t<Target>> &&
    std::derived_from<std::remove_cvref_t<Target>, Eigen::DenseBase<std::remove_cvref_t<Target>>> &&
    (std::remove_cvref_t<Target>::Flags & Eigen::LvalueBit) != 0;

/// A checked file: once constructed, every tensor it lists lies within its bytes.
///
/// `read` reads the header of a file, and keeps the file open. A tensor is read when it is
/// requested, in pieces, into its target. Opening a file with a header of n bytes takes less than
/// 4 n + 1 MiB of memory, whatever is in the file. If the file is replaced meanwhile, the tensors
/// are those of the old file. If it shrinks, reading throws.
///
/// `parse` owns the bytes, and copies share them. `view` borrows the bytes, so that a memory map or
/// a compiled-in array needs no copy; the caller must keep them alive. All members are const and
/// may be called concurrently.
class SafeTensors {
 public:
#if FASTWEIGHTS_FILES
  /// Opens a regular file. Errors begin with its path.
  static SafeTensors read(const std::filesystem::path& path);
#endif

  /// Takes ownership of the bytes. Errors begin with `origin`.
  static SafeTensors parse(std::vector<std::byte> bytes, std::string origin = "safetensors");

  /// Borrows the bytes. Errors begin with `origin`.
  static SafeTensors view(std::span<const std::byte> bytes, std::string origin = "safetensors");

  /// Borrowing from a temporary would dangle.
  static SafeTensors view(std::vector<std::byte>&& bytes, std::string origin = "") = delete;

  /// Beginning of errors: the path of a file.
  const std::string& origin() const { return origin_; }

  /// The number of tensors.
  std::size_t size() const { return header_.tensors.size(); }
  /// True if the file has a tensor of this name.
  bool contains(std::string_view name) const { return header_.find(name) != nullptr; }

  /// In alphabetical order.
  std::vector<std::string> names() const;

  /// The texts of `__metadata__` by their keys.
  const std::map<std::string, std::string, std::less<>>& metadata() const {
    return header_.metadata;
  }

  /// Throws, like all access by name, if there is no such tensor.
  TensorInfo info(std::string_view name) const { return header_.info(find(name)); }

  /// The type of a tensor's elements. Throws SafeTensorsError if there is no such tensor.
  DType dtype(std::string_view name) const { return find(name).dtype; }
  /// The shape of a tensor. Throws SafeTensorsError if there is no such tensor.
  Shape shape(std::string_view name) const { return info(name).shape; }

  /// The tensor's bytes: a part of the bytes in memory, or read from the file.
  TensorBytes data(std::string_view name) const;

  /// All elements in file order (row-major), for any rank. A floating-point S reads F64, F32, F16
  /// and BF16; an integer S reads every integer type and BOOL. Throws for other pairs of types, and
  /// for a value that S cannot hold: see dtype.hpp.
  template <ReadableScalar S> std::vector<S> values(std::string_view name) const {
    std::vector<S> values(count_of(name));
    if constexpr (std::integral<S>) {
      read_integers(name, values.data(),
                    [](const detail::Integer& from, void* elements, std::size_t i) {
                      static_cast<S*>(elements)[i] = static_cast<S>(from.bits);
                      return from.fits<S>();
                    });
    } else {
      read_floats(name, fw::detail::leaf_of_scalar<S>(values.data(),
                                                      static_cast<Eigen::Index>(values.size())));
    }
    return values;
  }

  /// A [rows, cols] tensor as a column-major matrix, [n] as one column, a scalar as 1×1. Throws for
  /// a higher rank, and as `values` does.
  template <ReadableScalar S>
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> matrix(std::string_view name) const {
    const Shape axes = shape(name);
    if (axes.size() > 2) {
      fail(name, "shape " + detail::to_text(axes) + " has too many axes for a matrix");
    }
    Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> result(axes.empty() ? 1 : axes[0],
                                                            axes.size() < 2 ? 1 : axes[1]);
    copy_to(name, result);
    return result;
  }

  /// Fills an Eigen matrix, vector, block or map, which must already have the tensor's shape. If
  /// this throws, the target is unchanged. The comparison of shapes ignores axes of length 1:
  /// PyTorch's depthwise convolution weight [D, 1, K] fits a D×K matrix, and [n], [n, 1] and [1, n]
  /// all fit a vector. Of three axes the first two may together be the rows: PyTorch's convolution
  /// weight [R, D, K] fits an R D×K matrix. Throws as `values` does.
  template <WritableDense Target> void copy_to(std::string_view name, Target&& target) const {
    using S = typename std::remove_cvref_t<Target>::Scalar;
    check_shape(name, target.rows(), target.cols());
    if (target.size() == 0) return;
    using RowMajor = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const std::vector<S> source = values<S>(name);
    const auto rows = Eigen::Map<const RowMajor>(source.data(), target.rows(), target.cols());
    for (Eigen::Index j = 0; j < target.cols(); ++j)
      for (Eigen::Index i = 0; i < target.rows(); ++i) target.coeffRef(i, j) = rows(i, j);
  }

  /// Reads into a type-erased array or number. If an element is out of range, the elements before
  /// it have been written.
  void copy_to(std::string_view name, const fw::detail::Leaf& leaf) const;

  /// Throws SafeTensorsError with the file, the tensor and `what`.
  [[noreturn]] void fail(std::string_view name, const std::string& what) const;

 private:
  // Is called with consecutive pieces of a tensor, each of whole elements, and with the number of
  // the first element.
  using PieceVisitor = std::function<void(std::span<const std::byte> piece, std::size_t first)>;

  SafeTensors(std::shared_ptr<const detail::ByteSource> source, std::string origin);

  const detail::Header::Tensor& find(std::string_view name) const;
  void check_shape(std::string_view name, Eigen::Index rows, Eigen::Index cols) const;
  std::size_t count_of(std::string_view name) const;
  void visit_pieces(std::string_view name, const PieceVisitor& visit) const;

  void check_kind(std::string_view name, bool fits, const char* kind) const;
  [[noreturn]] void fail_range(std::string_view name, std::size_t i,
                               const std::string& element) const;

  // Stores an integer as element i, and returns false if it does not fit.
  using StoreInteger = bool (*)(const detail::Integer& from, void* elements, std::size_t i);
  void read_integers(std::string_view name, void* elements, StoreInteger store) const;

  void read_counts(std::string_view name, const fw::detail::Leaf& leaf) const;

  // The file is row-major; the leaf may be in another order.
  void read_floats(std::string_view name, const fw::detail::Leaf& leaf) const;

  std::string origin_;
  std::shared_ptr<const detail::ByteSource> source_;
  std::uint64_t data_begin_ = 0;  // of the tensors' data in the source
  detail::Header header_;
};

}  // namespace fw::io

#ifndef FASTWEIGHTS_COMPILED
#include "fastweights/io/implementation/safetensors_reader.hpp"
#endif
