/// The members of SafeTensors that do not depend on a type: see safetensors_reader.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "fastweights/core/errors.hpp"
#include "fastweights/core/implementation/inline.hpp"
#include "fastweights/io/implementation/byte_source.hpp"
#include "fastweights/io/implementation/json_text.hpp"
#include "fastweights/io/implementation/safetensors_header.hpp"
#include "fastweights/io/implementation/safetensors_layout.hpp"
#include "fastweights/io/safetensors_reader.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io {

namespace detail {

// Files are read in pieces of this size, a multiple of every element's.
inline constexpr std::size_t piece_bytes = 65536;

/// Checks the header's length and its first byte before the header is read. `begin` are the first
/// bytes of the file, at most 9. Archives are named, because users mistake them for this format.
inline std::size_t checked_header_bytes(std::span<const std::byte> begin, std::uint64_t file_bytes,
                                        std::string_view origin) {
  const auto text = [&](std::size_t i) { return static_cast<char>(begin[i]); };
  const std::uint64_t rest = file_bytes - std::min<std::uint64_t>(file_bytes, length_bytes);
  const std::uint64_t length =
      file_bytes < length_bytes ? 0 : load_element<std::uint64_t>(begin.data());
  const bool opens = length > 0 && length <= rest && text(length_bytes) == '{';
  if (!opens && begin.size() > 1 && text(0) == 'P' && text(1) == 'K')
    fail(origin,
         "a zip archive, as torch.save (.pt) and numpy.savez write it, not safetensors; in Python, "
         "load it and save it with safetensors");
  if (file_bytes < length_bytes)
    fail(origin,
         "holds " + std::to_string(file_bytes) + " bytes, the header's length alone takes 8");
  check_header_length(length, origin);
  if (length > rest)
    fail(origin, "header of " + std::to_string(length) + " bytes, only " + std::to_string(rest) +
                     " follow its length");
  if (!opens) fail(origin, "header: does not start with '{'");
  return static_cast<std::size_t>(length);
}

inline std::string read_header(const ByteSource& source, std::string_view origin) {
  std::array<std::byte, length_bytes + 1> begin{};
  const auto first = std::span(begin).first(
      static_cast<std::size_t>(std::min<std::uint64_t>(begin.size(), source.size())));
  read_fully(source, 0, first, origin, "header");
  std::string text(checked_header_bytes(first, source.size(), origin), ' ');
  read_fully(source, length_bytes, std::as_writable_bytes(std::span(text)), origin, "header");
  return text;
}

inline Shape without_ones(Shape shape) {
  std::erase(shape, Eigen::Index{1});
  return shape;
}

// True if a leaf's scalar is that type of a file.
inline bool is_same_type(DType type, const fw::detail::Leaf& leaf) {
  using fw::detail::ScalarKind;
  return (type == DType::F32 && leaf.scalar == ScalarKind::float32) ||
         (type == DType::F64 && leaf.scalar == ScalarKind::float64) ||
         (type == DType::F16 && leaf.scalar == ScalarKind::float16) ||
         (type == DType::BF16 && leaf.scalar == ScalarKind::bfloat16);
}

// If the entries can have every value of `type`: copies all in order, fast, and gives true. Else
// gives false.
inline bool copy_in_order(std::span<const std::byte> elements, DType type,
                          const fw::detail::Leaf& leaf, std::size_t first) {
  const std::size_t width = width_of(type), count = elements.size() / width;
  if (is_same_type(type, leaf)) {
    auto* to = static_cast<std::byte*>(leaf.entry(static_cast<Eigen::Index>(first)));
    for (std::size_t i = 0; i < count; ++i)
      copy_element(&elements[i * width], width, to + i * width);
    return true;
  }
  if (type != DType::BF16 || leaf.scalar != fw::detail::ScalarKind::float32) return false;
  float* to = static_cast<float*>(leaf.data) + first;
  for (std::size_t i = 0; i < count; ++i)
    to[i] = static_cast<float>(load_element<Eigen::bfloat16>(&elements[i * width]));
  return true;
}

}  // namespace detail

#if FASTWEIGHTS_FILES
FASTWEIGHTS_INLINE SafeTensors SafeTensors::read(const std::filesystem::path& path) {
  return {detail::open_file(path), path.string()};
}
#endif

FASTWEIGHTS_INLINE SafeTensors SafeTensors::parse(std::vector<std::byte> bytes,
                                                  std::string origin) {
  return {detail::own_bytes(std::move(bytes)), std::move(origin)};
}

FASTWEIGHTS_INLINE SafeTensors SafeTensors::view(std::span<const std::byte> bytes,
                                                 std::string origin) {
  return {detail::borrow_bytes(bytes), std::move(origin)};
}

FASTWEIGHTS_INLINE SafeTensors::SafeTensors(std::shared_ptr<const detail::ByteSource> source,
                                            std::string origin)
    : origin_(std::move(origin)), source_(std::move(source)) {
  std::string text = detail::read_header(*source_, origin_);
  data_begin_ = detail::length_bytes + text.size();
  header_ = detail::parse_header(std::move(text), origin_);
  detail::check_layout(header_, source_->size() - data_begin_, origin_);
}

FASTWEIGHTS_INLINE std::vector<std::string> SafeTensors::names() const {
  std::vector<std::string> names;
  names.reserve(size());
  for (const auto& tensor : header_.tensors) names.emplace_back(header_.name(tensor));
  return names;
}

FASTWEIGHTS_INLINE const detail::Header::Tensor& SafeTensors::find(std::string_view name) const {
  const detail::Header::Tensor* const found = header_.find(name);
  if (!found) fail(name, "not in the file");
  return *found;
}

FASTWEIGHTS_INLINE TensorBytes SafeTensors::data(std::string_view name) const {
  const TensorInfo tensor = info(name);
  const std::size_t size = tensor.end - tensor.begin;
  if (const auto all = source_->memory(); !all.empty())
    return {all.subspan(static_cast<std::size_t>(data_begin_) + tensor.begin, size), source_};
  const auto copy = std::make_shared<std::vector<std::byte>>(size);
  visit_pieces(name, [&, width = width_of(tensor.dtype)](auto piece, std::size_t first) {
    std::copy(piece.begin(), piece.end(), &(*copy)[first * width]);
  });
  return {*copy, copy};
}

FASTWEIGHTS_INLINE void SafeTensors::visit_pieces(std::string_view name,
                                                  const PieceVisitor& visit) const {
  const TensorInfo tensor = info(name);
  std::uint64_t at = data_begin_ + tensor.begin;
  const std::uint64_t end = data_begin_ + tensor.end;
  if (at == end) return;
  if (const auto all = source_->memory(); !all.empty())
    return visit(all.subspan(static_cast<std::size_t>(at), tensor.end - tensor.begin), 0);
  std::vector<std::byte> buffer(
      static_cast<std::size_t>(std::min<std::uint64_t>(end - at, detail::piece_bytes)));
  for (std::size_t first = 0; at < end; first += buffer.size() / width_of(tensor.dtype)) {
    const auto piece = std::span(buffer).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(end - at, buffer.size())));
    detail::read_fully(*source_, at, piece, origin_, detail::tensor_label(name));
    visit(piece, first);
    at += piece.size();
  }
}

FASTWEIGHTS_INLINE void SafeTensors::copy_to(std::string_view name,
                                             const fw::detail::Leaf& leaf) const {
  if (!leaf.is_array && count_of(name) != 1)
    fail(name, "expected one number, has " + std::to_string(count_of(name)));
  if (leaf.is_array) check_shape(name, leaf.rows, leaf.cols);
  if (leaf.scalar == fw::detail::ScalarKind::integer)
    read_counts(name, leaf);
  else
    read_floats(name, leaf);
}

FASTWEIGHTS_INLINE void SafeTensors::fail(std::string_view name, const std::string& what) const {
  detail::fail(origin_, detail::tensor_label(name) + ": " + what);
}

FASTWEIGHTS_INLINE void SafeTensors::check_shape(std::string_view name, Eigen::Index rows,
                                                 Eigen::Index cols) const {
  const Shape expected{rows, cols}, found = shape(name);
  const bool rows_of_rows = found.size() == 3 && found[0] * found[1] == rows && found[2] == cols;
  if (!rows_of_rows && detail::without_ones(found) != detail::without_ones(expected))
    fail(name, "expected shape " + detail::to_text(expected) + ", the file has " +
                   detail::to_text(found));
}

FASTWEIGHTS_INLINE std::size_t SafeTensors::count_of(std::string_view name) const {
  const detail::Header::Tensor& tensor = find(name);
  return static_cast<std::size_t>(tensor.end - tensor.begin) / width_of(tensor.dtype);
}

FASTWEIGHTS_INLINE void SafeTensors::check_kind(std::string_view name, bool fits,
                                                const char* kind) const {
  if (!fits) fail(name, std::string(name_of(dtype(name))) + " cannot be read as " + kind);
}

FASTWEIGHTS_INLINE void SafeTensors::fail_range(std::string_view name, std::size_t i,
                                                const std::string& element) const {
  fail(name, "element " + std::to_string(i) + " is " + element +
                 ", beyond the range of the type it is read as");
}

FASTWEIGHTS_INLINE void SafeTensors::read_integers(std::string_view name, void* elements,
                                                   StoreInteger store) const {
  const DType type = dtype(name);
  check_kind(name, detail::is_integer(type), "integers");
  const std::size_t width = width_of(type);
  visit_pieces(name, [&](std::span<const std::byte> piece, std::size_t first) {
    for (std::size_t at = 0, i = first; at < piece.size(); at += width, ++i) {
      const detail::Integer element = detail::load_integer(type, &piece[at]);
      if (!store(element, elements, i)) fail_range(name, i, element.text());
    }
  });
}

FASTWEIGHTS_INLINE void SafeTensors::read_counts(std::string_view name,
                                                 const fw::detail::Leaf& leaf) const {
  const std::vector<std::int64_t> counts = values<std::int64_t>(name);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (!leaf.is_array && counts[i] < 0)
      fail(name, "expected a count, is " + std::to_string(counts[i]));
    if (!leaf.store_integer(leaf.from_row_major(static_cast<Eigen::Index>(i)), counts[i]))
      fail_range(name, i, std::to_string(counts[i]));
  }
}

FASTWEIGHTS_INLINE void SafeTensors::read_floats(std::string_view name,
                                                 const fw::detail::Leaf& leaf) const {
  const DType type = dtype(name);
  check_kind(name, detail::is_float(type), "floating-point numbers");
  const bool is_same = detail::is_same_type(type, leaf);
  const std::size_t width = width_of(type);
  const auto read_one = [&](const std::byte* from, std::size_t i) {
    const Eigen::Index to = leaf.from_row_major(static_cast<Eigen::Index>(i));
    if (is_same) return detail::copy_element(from, width, static_cast<std::byte*>(leaf.entry(to)));
    const double x = detail::load_float(type, from);
    if (!leaf.store(to, x)) fail_range(name, i, fw::detail::number_text(x));
  };
  const bool in_order = leaf.is_row_major || leaf.cols == 1 || leaf.rows == 1;
  visit_pieces(name, [&](std::span<const std::byte> piece, std::size_t first) {
    if (in_order && detail::copy_in_order(piece, type, leaf, first)) return;
    for (std::size_t at = 0; at < piece.size(); at += width) read_one(&piece[at], first++);
  });
}

}  // namespace fw::io
