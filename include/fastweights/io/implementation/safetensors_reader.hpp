/// The members of SafeTensors that do not depend on a type: see safetensors_reader.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <system_error>

#include "fastweights/core/implementation/inline.hpp"
#include "fastweights/io/implementation/json_text.hpp"
#include "fastweights/io/implementation/safetensors_header.hpp"
#include "fastweights/io/implementation/safetensors_layout.hpp"
#include "fastweights/io/safetensors_reader.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io {

namespace detail {

inline std::size_t checked_header_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() < length_bytes) {
    throw SafeTensorsError("holds " + std::to_string(bytes.size()) +
                           " bytes, the header's length alone takes 8");
  }
  const auto length = load_element<std::uint64_t>(bytes.data());
  check_header_length(length);
  const std::size_t rest = bytes.size() - length_bytes;
  if (length > rest) {
    throw SafeTensorsError("header of " + std::to_string(length) + " bytes, only " +
                           std::to_string(rest) + " follow its length");
  }
  return static_cast<std::size_t>(length);
}

inline std::vector<std::byte> file_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) throw SafeTensorsError(path.string() + ": " + error.message());
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  std::ifstream stream(path, std::ios::binary);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!stream) throw SafeTensorsError(path.string() + ": cannot be read");
  return bytes;
}

inline Shape without_ones(Shape shape) {
  std::erase(shape, Eigen::Index{1});
  return shape;
}

}  // namespace detail

FASTWEIGHTS_INLINE SafeTensors SafeTensors::read(const std::filesystem::path& path) {
  return parse(detail::file_bytes(path), path.string());
}

FASTWEIGHTS_INLINE SafeTensors SafeTensors::parse(std::vector<std::byte> bytes,
                                                  std::string origin) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  SafeTensors file = view(*owner, std::move(origin));
  file.owner_ = std::move(owner);
  return file;
}

FASTWEIGHTS_INLINE SafeTensors SafeTensors::view(std::span<const std::byte> bytes,
                                                 std::string origin) {
  try {
    return SafeTensors(bytes, origin);
  } catch (const SafeTensorsError& error) {
    throw SafeTensorsError(origin + ": " + error.what());
  }
}

FASTWEIGHTS_INLINE std::vector<std::string> SafeTensors::names() const {
  std::vector<std::string> names;
  for (const auto& entry : header_.tensors) names.push_back(entry.first);
  return names;
}

FASTWEIGHTS_INLINE const TensorInfo& SafeTensors::info(std::string_view name) const {
  const auto found = header_.tensors.find(name);
  if (found == header_.tensors.end()) fail(name, "not in the file");
  return found->second;
}

FASTWEIGHTS_INLINE std::span<const std::byte> SafeTensors::data(std::string_view name) const {
  const TensorInfo& tensor = info(name);
  return data_.subspan(tensor.begin, tensor.end - tensor.begin);
}

FASTWEIGHTS_INLINE void SafeTensors::copy_to(std::string_view name,
                                             const fw::detail::Leaf& leaf) const {
  if (!leaf.is_array && count_of(info(name)) != 1)
    fail(name, "expected one number, has " + std::to_string(count_of(info(name))));
  if (leaf.is_array) check_shape(name, leaf.rows, leaf.cols);
  if (leaf.scalar == fw::detail::ScalarKind::integer)
    read_counts(name, leaf);
  else
    read_floats(name, leaf);
}

FASTWEIGHTS_INLINE void SafeTensors::fail(std::string_view name, const std::string& what) const {
  throw SafeTensorsError(origin_ + ": " + detail::tensor_label(name) + ": " + what);
}

FASTWEIGHTS_INLINE SafeTensors::SafeTensors(std::span<const std::byte> bytes, std::string origin)
    : origin_(std::move(origin)) {
  const std::size_t header_bytes = detail::checked_header_bytes(bytes);
  const auto text = bytes.subspan(detail::length_bytes, header_bytes);
  data_ = bytes.subspan(detail::length_bytes + header_bytes);
  header_ = detail::parse_header({reinterpret_cast<const char*>(text.data()), text.size()});
  detail::check_layout(header_, data_.size());
}

FASTWEIGHTS_INLINE void SafeTensors::check_shape(std::string_view name, Eigen::Index rows,
                                                 Eigen::Index cols) const {
  const Shape expected{rows, cols};
  const Shape& found = shape(name);
  if (detail::without_ones(found) != detail::without_ones(expected))
    fail(name, "expected shape " + detail::to_text(expected) + ", the file has " +
                   detail::to_text(found));
}

FASTWEIGHTS_INLINE std::size_t SafeTensors::count_of(const TensorInfo& tensor) {
  return (tensor.end - tensor.begin) / std::max<std::size_t>(1, width_of(tensor.dtype));
}

FASTWEIGHTS_INLINE void SafeTensors::check_kind(std::string_view name, bool fits,
                                                const char* kind) const {
  if (!fits) fail(name, std::string(name_of(dtype(name))) + " cannot be read as " + kind);
}

FASTWEIGHTS_INLINE void SafeTensors::fail_range(std::string_view name, Eigen::Index i,
                                                const std::string& element) const {
  fail(name, "element " + std::to_string(i) + " is " + element +
                 ", beyond the range of the type it is read as");
}

FASTWEIGHTS_INLINE void SafeTensors::read_counts(std::string_view name,
                                                 const fw::detail::Leaf& leaf) const {
  const std::vector<std::int64_t> counts = values<std::int64_t>(name);
  for (Eigen::Index i = 0; i < leaf.size(); ++i) {
    const std::int64_t count = counts[static_cast<std::size_t>(i)];
    if (!leaf.is_array && count < 0) fail(name, "expected a count, is " + std::to_string(count));
    if (!leaf.store_integer(leaf.from_row_major(i), count))
      fail_range(name, i, std::to_string(count));
  }
}

FASTWEIGHTS_INLINE void SafeTensors::read_floats(std::string_view name,
                                                 const fw::detail::Leaf& leaf) const {
  const DType type = dtype(name);
  check_kind(name, detail::is_float(type), "floating-point numbers");
  const std::byte* bytes = data(name).data();
  const auto width = static_cast<Eigen::Index>(width_of(type));
  for (Eigen::Index i = 0; i < leaf.size(); ++i) {
    const double x = detail::load_float(type, bytes + i * width);
    if (!leaf.store(leaf.from_row_major(i), x))
      fail_range(
          name, i,
          type == DType::F64 ? detail::number_text(x) : detail::number_text(static_cast<float>(x)));
  }
}

}  // namespace fw::io
