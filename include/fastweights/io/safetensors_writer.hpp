/// The safetensors writer: see safetensors.hpp for the format and an example.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <ranges>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "fastweights/core/leaves.hpp"
#include "fastweights/io/safetensors_format.hpp"

namespace fw::io {

/// Collects named tensors and writes them as one file. `add` copies the values.
///
/// The bytes depend on the names and values alone, not on the order of the calls. Tensors are
/// sorted by element width, the widest first, and then by name; this aligns every tensor to its
/// element. A float is written as F32, a double as F64, Eigen's half and bfloat16 as F16 and BF16,
/// and every integer as I64. `add` throws, and adds nothing, if the name is taken, reserved or not
/// valid UTF-8.
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

  /// Adds a type-erased array or number. Integers become I64.
  void add(const std::string& name, const fw::detail::Leaf& leaf) {
    const DType type = dtype_of(name, leaf);
    std::vector<std::byte> bytes(static_cast<std::size_t>(leaf.size()) * width_of(type));
    std::byte* to = bytes.data();
    for (Eigen::Index i = 0; i < leaf.size(); ++i, to += width_of(type))
      store_entry(name, leaf, leaf.from_row_major(i), to);
    insert(name, {type, shape_of(leaf), std::move(bytes)});
  }

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

  /// Adds a text to the file's metadata. Throws if the key is taken or a text is not UTF-8.
  void metadata(const std::string& key, const std::string& value) {
    check_utf8(key, "metadata " + detail::json_quote(key));
    check_utf8(value, "metadata " + detail::json_quote(key));
    if (!metadata_.emplace(key, value).second) {
      throw SafeTensorsError("metadata " + detail::json_quote(key) + ": added twice");
    }
  }

  /// The whole file.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all;
    emit([&all](std::span<const std::byte> part) {
      all.insert(all.end(), part.begin(), part.end());
    });
    return all;
  }

  /// Writes a temporary file beside `path` and renames it. So a reader never sees half a file, even
  /// if this program crashes. (A power cut is another matter: there is no fsync.) Throws if the
  /// file cannot be written; an existing file is unchanged then.
  void write(const std::filesystem::path& path) const {
    std::filesystem::path temporary = path;
    temporary += '.';
    temporary += std::to_string(std::random_device{}());
    temporary += ".tmp";
    try {
      write_directly(temporary);
      std::filesystem::rename(temporary, path);
    } catch (const std::exception& error) {
      std::error_code ignored;
      std::filesystem::remove(temporary, ignored);
      throw SafeTensorsError(path.string() + ": cannot be written: " + error.what());
    }
  }

 private:
  struct Tensor {
    DType dtype;
    Shape shape;
    std::vector<std::byte> data;
  };
  using Item = std::pair<const std::string, Tensor>;

  [[noreturn]] static void fail(const std::string& name, const std::string& what) {
    throw SafeTensorsError(detail::tensor_label(name) + ": " + what);
  }

  static void check_utf8(const std::string& text, const std::string& label) {
    if (!detail::is_utf8(text)) throw SafeTensorsError(label + ": not valid UTF-8");
  }

  static void check_name(const std::string& name) {
    check_utf8(name, detail::tensor_label(name));
    if (name == detail::metadata_name) fail(name, "the name is reserved");
  }

  void insert(const std::string& name, Tensor tensor) {
    check_name(name);
    if (!tensors_.emplace(name, std::move(tensor)).second) fail(name, "added twice");
  }

  static Shape shape_of(const fw::detail::Leaf& leaf) {
    if (!leaf.is_array) return {};
    return leaf.is_column ? Shape{leaf.rows} : Shape{leaf.rows, leaf.cols};
  }
  static DType dtype_of(const std::string& name, const fw::detail::Leaf& leaf) {
    using fw::detail::ScalarKind;
    if (leaf.scalar == ScalarKind::float32) return DType::F32;
    if (leaf.scalar == ScalarKind::float64) return DType::F64;
    if (leaf.scalar == ScalarKind::float16) return DType::F16;
    if (leaf.scalar == ScalarKind::bfloat16) return DType::BF16;
    if (leaf.scalar == ScalarKind::integer) return DType::I64;
    fail(name, "numbers of this type cannot be written");
  }
  static void store_entry(const std::string& name, const fw::detail::Leaf& leaf, Eigen::Index i,
                          std::byte* to) {
    if (leaf.scalar == fw::detail::ScalarKind::integer) {
      std::int64_t value = 0;
      if (!leaf.load_integer(i, value)) fail(name, "element beyond the range of I64");
      detail::store_element(value, to);
    } else {
      std::memcpy(to, leaf.entry(i), leaf.width);
      if constexpr (std::endian::native != std::endian::little) std::reverse(to, to + leaf.width);
    }
  }

  template <class S>
  static std::vector<std::byte> packed(const std::string& name, std::span<const S> values) {
    using T = std::conditional_t<std::integral<S>, std::int64_t, S>;
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::integral<S>) {
        if (!std::in_range<T>(values[i])) fail(name, "element beyond the range of I64");
      }
      detail::store_element(static_cast<T>(values[i]), &bytes[i * sizeof(T)]);
    }
    return bytes;
  }

  std::vector<const Item*> in_file_order() const {
    std::vector<const Item*> items;
    for (const Item& item : tensors_) items.push_back(&item);
    std::ranges::stable_sort(items, std::ranges::greater{},
                             [](const Item* item) { return width_of(item->second.dtype); });
    return items;
  }

  // {"name":value, …}; the values are JSON already.
  static std::string object_text(const std::map<std::string, std::string>& values) {
    std::string text = "{";
    for (const auto& [name, value] : values) {
      if (text.size() > 1) text += ',';
      text += detail::json_quote(name);
      text += ':';
      text += value;
    }
    text += '}';
    return text;
  }
  static std::string shape_text(const Shape& shape) {
    std::string text = "[";
    for (const Eigen::Index axis : shape) {
      if (text.size() > 1) text += ',';
      text += std::to_string(axis);
    }
    text += ']';
    return text;
  }
  std::string metadata_text() const {
    std::map<std::string, std::string> quoted;
    for (const auto& [key, value] : metadata_) quoted[key] = detail::json_quote(value);
    return object_text(quoted);
  }

  std::string header() const {
    std::map<std::string, std::string> fields;
    if (!metadata_.empty()) fields[std::string(detail::metadata_name)] = metadata_text();
    std::size_t begin = 0;
    for (const Item* item : in_file_order()) {
      const std::size_t end = begin + item->second.data.size();
      fields[item->first] = "{\"data_offsets\":[" + std::to_string(begin) + "," +
                            std::to_string(end) + "],\"dtype\":\"" +
                            std::string(name_of(item->second.dtype)) +
                            "\",\"shape\":" + shape_text(item->second.shape) + "}";
      begin = end;
    }
    std::string text = object_text(fields);
    text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data is aligned
    if (text.size() > detail::max_header_bytes) {
      throw SafeTensorsError("header of " + std::to_string(text.size()) +
                             " bytes exceeds the limit of " +
                             std::to_string(detail::max_header_bytes));
    }
    return text;
  }

  template <class Sink> void emit(Sink&& sink) const {
    const std::string text = header();
    std::array<std::byte, detail::length_bytes> length;
    detail::store_element(std::uint64_t{text.size()}, length.data());
    sink(std::span<const std::byte>(length));
    sink(std::as_bytes(std::span(text)));
    for (const Item* item : in_file_order()) sink(std::span<const std::byte>(item->second.data));
  }

  void write_directly(const std::filesystem::path& path) const {
    std::ofstream stream(path, std::ios::binary);
    emit([&stream](std::span<const std::byte> part) {
      stream.write(reinterpret_cast<const char*>(part.data()),
                   static_cast<std::streamsize>(part.size()));
    });
    stream.close();
    if (!stream) throw std::system_error(errno, std::generic_category());
  }

  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace fw::io
