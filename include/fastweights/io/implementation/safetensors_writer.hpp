/// The members of SafeTensorsWriter that do not depend on a type: see safetensors_writer.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <random>
#include <system_error>

#include "fastweights/core/implementation/inline.hpp"
#include "fastweights/io/implementation/json_text.hpp"
#include "fastweights/io/safetensors_writer.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io {

namespace detail {

inline void check_utf8(const std::string& text, const std::string& label) {
  if (!is_utf8(text)) throw SafeTensorsError(label + ": not valid UTF-8");
}

[[noreturn]] inline void fail_to_write(const std::string& name, const std::string& what) {
  throw SafeTensorsError(tensor_label(name) + ": " + what);
}

inline Shape shape_of(const fw::detail::Leaf& leaf) {
  if (!leaf.is_array) return {};
  return leaf.is_column ? Shape{leaf.rows} : Shape{leaf.rows, leaf.cols};
}

inline DType dtype_of(const std::string& name, const fw::detail::Leaf& leaf) {
  using fw::detail::ScalarKind;
  if (leaf.scalar == ScalarKind::float32) return DType::F32;
  if (leaf.scalar == ScalarKind::float64) return DType::F64;
  if (leaf.scalar == ScalarKind::float16) return DType::F16;
  if (leaf.scalar == ScalarKind::bfloat16) return DType::BF16;
  if (leaf.scalar == ScalarKind::integer) return DType::I64;
  fail_to_write(name, "numbers of this type cannot be written");
}

inline void store_entry(const std::string& name, const fw::detail::Leaf& leaf, Eigen::Index i,
                        std::byte* to) {
  if (leaf.scalar == fw::detail::ScalarKind::integer) {
    std::int64_t value = 0;
    if (!leaf.load_integer(i, value)) fail_to_write(name, "element beyond the range of I64");
    store_element(value, to);
  } else {
    std::memcpy(to, leaf.entry(i), leaf.width);
    if constexpr (std::endian::native != std::endian::little) std::reverse(to, to + leaf.width);
  }
}

// Appends "name": to a JSON object.
inline void append_name(std::string& json, std::string_view name) {
  if (json.back() != '{') json += ',';
  json += json_quote(name);
  json += ':';
}

inline void append_integers(std::string& json, std::span<const std::int64_t> values) {
  json += '[';
  for (const std::int64_t value : values) {
    if (json.back() != '[') json += ',';
    json += std::to_string(value);
  }
  json += ']';
}

}  // namespace detail

FASTWEIGHTS_INLINE void SafeTensorsWriter::add(const std::string& name,
                                               const fw::detail::Leaf& leaf) {
  const DType type = detail::dtype_of(name, leaf);
  std::vector<std::byte> bytes(static_cast<std::size_t>(leaf.size()) * width_of(type));
  std::byte* to = bytes.data();
  for (Eigen::Index i = 0; i < leaf.size(); ++i, to += width_of(type))
    detail::store_entry(name, leaf, leaf.from_row_major(i), to);
  insert(name, {type, detail::shape_of(leaf), std::move(bytes)});
}

FASTWEIGHTS_INLINE void SafeTensorsWriter::metadata(const std::string& key,
                                                    const std::string& value) {
  const std::string label = "metadata " + detail::json_quote(key);
  detail::check_utf8(key, label);
  detail::check_utf8(value, label);
  if (!metadata_.emplace(key, value).second) throw SafeTensorsError(label + ": added twice");
}

FASTWEIGHTS_INLINE void SafeTensorsWriter::fail(const std::string& name, const std::string& what) {
  detail::fail_to_write(name, what);
}

FASTWEIGHTS_INLINE void SafeTensorsWriter::insert(const std::string& name, Tensor tensor) {
  detail::check_utf8(name, detail::tensor_label(name));
  if (name == detail::metadata_name) fail(name, "the name is reserved");
  if (!tensors_.emplace(name, std::move(tensor)).second) fail(name, "added twice");
}

// Calls f(name, tensor) in the order of the file.
template <class F> void SafeTensorsWriter::for_each_tensor(const F& f) const {
  for (const std::size_t width : {8U, 4U, 2U, 1U})
    for (const auto& [name, tensor] : tensors_)
      if (width_of(tensor.dtype) == width) f(name, tensor);
}

FASTWEIGHTS_INLINE std::string SafeTensorsWriter::metadata_text() const {
  std::string json = "{";
  for (const auto& [key, value] : metadata_) {
    detail::append_name(json, key);
    json += detail::json_quote(value);
  }
  return json + '}';
}

// Names are in alphabetical order.
FASTWEIGHTS_INLINE std::string SafeTensorsWriter::header() const {
  std::map<std::string, std::string> fields;
  if (!metadata_.empty()) fields.emplace(detail::metadata_name, metadata_text());
  std::int64_t begin = 0;
  for_each_tensor([&](const std::string& name, const Tensor& tensor) {
    const std::int64_t end = begin + std::ssize(tensor.data);
    std::string& json = fields[name] = "{\"data_offsets\":";
    detail::append_integers(json, std::array{begin, end});
    json += ",\"dtype\":\"";
    json += name_of(tensor.dtype);
    json += "\",\"shape\":";
    detail::append_integers(json,
                            std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end()));
    json += '}';
    begin = end;
  });
  std::string text = "{";
  for (const auto& [name, json] : fields) {
    detail::append_name(text, name);
    text += json;
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data is aligned
  detail::check_header_length(text.size());
  return text;
}

template <class Sink> void SafeTensorsWriter::emit(Sink&& sink) const {
  const std::string text = header();
  std::array<std::byte, detail::length_bytes> length;
  detail::store_element(std::uint64_t{text.size()}, length.data());
  sink(std::span<const std::byte>(length));
  sink(std::as_bytes(std::span(text)));
  for_each_tensor([&](const std::string&, const Tensor& tensor) {
    sink(std::span<const std::byte>(tensor.data));
  });
}

FASTWEIGHTS_INLINE std::vector<std::byte> SafeTensorsWriter::bytes() const {
  std::vector<std::byte> all;
  emit(
      [&all](std::span<const std::byte> part) { all.insert(all.end(), part.begin(), part.end()); });
  return all;
}

FASTWEIGHTS_INLINE void SafeTensorsWriter::write_directly(const std::filesystem::path& path) const {
  std::ofstream stream(path, std::ios::binary);
  emit([&stream](std::span<const std::byte> part) {
    stream.write(reinterpret_cast<const char*>(part.data()),
                 static_cast<std::streamsize>(part.size()));
  });
  stream.close();
  if (!stream) throw std::system_error(errno, std::generic_category());
}

FASTWEIGHTS_INLINE void SafeTensorsWriter::write(const std::filesystem::path& path) const {
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

}  // namespace fw::io
