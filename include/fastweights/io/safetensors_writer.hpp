/// The safetensors writer: see safetensors.hpp for the format and an example.
#pragma once

#include <Eigen/Core>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fastweights/core/leaves.hpp"
#include "fastweights/io/safetensors_format.hpp"

#if FASTWEIGHTS_FILES
#include <filesystem>
#endif

namespace fw::inline FASTWEIGHTS_ABI::io {

/// Collects named tensors and writes them as one file. `add` copies the values.
///
/// The bytes depend on the names and values alone, not on the order of the calls. Tensors are
/// sorted by element width, the widest first, and then by name; this aligns every tensor to its
/// element. A float is written as F32, a double as F64, Eigen's half and bfloat16 as F16 and BF16,
/// std::int8_t as I8 and every other integer as I64. `add` throws, and adds nothing, if the name is
/// taken, reserved or not valid UTF-8, or the shape has more than 64 axes.
class SafeTensorsWriter {
 public:
  /// Adds a matrix as [rows, cols]. A column-vector type becomes [n].
  template <class Derived>
  requires WritableScalar<typename Derived::Scalar>
  void add(const std::string& name, const Eigen::DenseBase<Derived>& dense) {
    using S = typename Derived::Scalar;
    Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> rows(dense.rows(),
                                                                           dense.cols());
    rows = dense.derived().matrix();
    const bool is_vector = Derived::ColsAtCompileTime == 1;
    add(name, is_vector ? Shape{rows.rows()} : Shape{rows.rows(), rows.cols()},
        std::span<const S>(rows.data(), static_cast<std::size_t>(rows.size())));
  }

  /// Adds a type-erased array or number.
  void add(const std::string& name, const fw::detail::Leaf& leaf);

  /// Adds a scalar, with shape [].
  template <WritableScalar S> void add(const std::string& name, S value) {
    add(name, Shape{}, std::span<const S>(&value, 1));
  }

  /// Adds a tensor of any rank from a vector, array or span in row-major order. Throws if the
  /// number of elements does not match the shape.
  template <std::ranges::contiguous_range Range>
  requires WritableScalar<std::ranges::range_value_t<Range>>
  void add(const std::string& name, const Shape& shape, const Range& values) {
    using S = std::ranges::range_value_t<Range>;
    const auto bytes = detail::checked_bytes(shape, sizeof(S));
    if (!bytes || *bytes != std::ranges::size(values) * sizeof(S)) {
      fail(name, std::to_string(std::ranges::size(values)) + " values do not fill shape " +
                     detail::to_text(shape));
    }
    insert(name, {io::dtype_of<S>(), shape, packed(name, std::span<const S>(values))});
  }

  /// Adds a tensor of any type from its bytes, as another file has them: little-endian.
  void add_bytes(const std::string& name, DType dtype, const Shape& shape,
                 std::span<const std::byte> bytes) {
    const auto expected = detail::checked_bytes(shape, width_of(dtype));
    if (!expected || *expected != bytes.size())
      fail(name,
           std::to_string(bytes.size()) + " bytes do not fill shape " + detail::to_text(shape));
    insert(name, {dtype, shape, {bytes.begin(), bytes.end()}});
  }

  /// Adds a text to the file's metadata. Throws if the key is taken, if a text is not UTF-8, or if
  /// there are 4096 texts.
  void metadata(const std::string& key, const std::string& value);

  /// The whole file.
  std::vector<std::byte> bytes() const;

#if FASTWEIGHTS_FILES
  /// Writes the file: afterwards `path` is the old file or the new one, never a part of it, even if
  /// this program is killed or the power fails. When this returns, the new file is on disk.
  ///
  /// The bytes go to a temporary file in the same folder, which is synchronised (fsync) and takes
  /// the place of `path` by a rename; then the folder is synchronised. The new file has the mode of
  /// the old one, and its owner if the system permits that; without an old file the umask decides.
  /// A symbolic link stays, and its target is replaced. Another hard link to the old file keeps the
  /// old content. The next call removes temporary files (.fastweights-*.tmp) of processes that were
  /// killed.
  ///
  /// Throws if the file cannot be written, and if `path` is something other than a regular file,
  /// such as a FIFO or a device; use bytes() for these. `path` is unchanged then, except if only
  /// the last step failed: the message says that the new file may not be on disk.
  ///
  /// On systems without POSIX the file is replaced by a rename, and the rest is not promised.
  void write(const std::filesystem::path& path) const;
#endif

 private:
  friend class FolderUpdate;

  struct Tensor {
    DType dtype;
    Shape shape;
    std::vector<std::byte> data;
  };

  [[noreturn]] static void fail(const std::string& name, const std::string& what);

  void insert(const std::string& name, Tensor tensor);
  template <class S>
  static std::vector<std::byte> packed(const std::string& name, std::span<const S> values) {
    constexpr bool widened = std::integral<S> && !std::same_as<S, std::int8_t>;
    using T = std::conditional_t<widened, std::int64_t, S>;
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (widened) {
        if (!std::in_range<T>(values[i])) fail(name, "element beyond the range of I64");
      }
      detail::store_element(static_cast<T>(values[i]), &bytes[i * sizeof(T)]);
    }
    return bytes;
  }

  template <class F> void for_each_tensor(const F& f) const;
  std::string metadata_text() const;
  std::string header() const;  // with its length in front
  std::vector<std::span<const std::byte>> parts(const std::string& header) const;

  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace fw::io

#ifndef FASTWEIGHTS_COMPILED
#include "fastweights/io/implementation/safetensors_writer.hpp"
#endif
