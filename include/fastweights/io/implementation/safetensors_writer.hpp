/// The members of SafeTensorsWriter that do not depend on a type: see safetensors_writer.hpp.
#pragma once

#include <array>
#include <cstdint>

#include "fastweights/core/implementation/inline.hpp"
#include "fastweights/io/implementation/files.hpp"
#include "fastweights/io/implementation/json_text.hpp"
#include "fastweights/io/safetensors_writer.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io {

namespace detail {

[[noreturn]] inline void fail_to_add(const std::string& label, const std::string& what) {
  fail("safetensors", label + ": " + what);
}

inline void check_utf8(const std::string& text, const std::string& label) {
  if (!is_utf8(text)) fail_to_add(label, "not valid UTF-8");
}

inline Shape shape_of(const fw::detail::Leaf& leaf) {
  Shape shape;
  if (leaf.is_array) shape.push_back(leaf.rows);
  if (leaf.is_array && !leaf.is_column) shape.push_back(leaf.cols);
  return shape;
}

inline bool is_int8(const fw::detail::Leaf& leaf) {
  return leaf.scalar == fw::detail::ScalarKind::integer && leaf.width == 1 && leaf.is_signed &&
         !leaf.is_bool;
}

inline DType dtype_of(const std::string& name, const fw::detail::Leaf& leaf) {
  using fw::detail::ScalarKind;
  if (leaf.scalar == ScalarKind::float32) return DType::F32;
  if (leaf.scalar == ScalarKind::float64) return DType::F64;
  if (leaf.scalar == ScalarKind::float16) return DType::F16;
  if (leaf.scalar == ScalarKind::bfloat16) return DType::BF16;
  if (is_int8(leaf)) return DType::I8;
  if (leaf.scalar == ScalarKind::integer) return DType::I64;
  fail_to_add(tensor_label(name), "numbers of this type cannot be written");
}

inline void store_entry(const std::string& name, const fw::detail::Leaf& leaf, Eigen::Index i,
                        std::byte* to) {
  if (leaf.scalar == fw::detail::ScalarKind::integer && !is_int8(leaf)) {
    std::int64_t value = 0;
    if (!leaf.load_integer(i, value))
      fail_to_add(tensor_label(name), "element beyond the range of I64");
    store_element(value, to);
  } else {
    copy_element(static_cast<const std::byte*>(leaf.entry(i)), leaf.width, to);
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
  Tensor tensor{detail::dtype_of(name, leaf), {}, {}};
  const std::size_t width = width_of(tensor.dtype);
  tensor.shape = detail::shape_of(leaf);
  tensor.data.resize(static_cast<std::size_t>(leaf.size()) * width);
  std::byte* to = tensor.data.data();
  for (Eigen::Index i = 0; i < leaf.size(); ++i, to += width)
    detail::store_entry(name, leaf, leaf.from_row_major(i), to);
  insert(name, std::move(tensor));
}

FASTWEIGHTS_INLINE void SafeTensorsWriter::metadata(const std::string& key,
                                                    const std::string& value) {
  const std::string label = "metadata " + detail::json_quote(key, detail::quote_limit);
  detail::check_utf8(key, label);
  detail::check_utf8(value, label);
  if (metadata_.size() == detail::max_metadata)
    detail::fail_to_add(label, "more than " + std::to_string(detail::max_metadata) + " entries");
  if (!metadata_.emplace(key, value).second) detail::fail_to_add(label, "added twice");
}

FASTWEIGHTS_INLINE void SafeTensorsWriter::fail(const std::string& name, const std::string& what) {
  detail::fail_to_add(detail::tensor_label(name), what);
}

FASTWEIGHTS_INLINE void SafeTensorsWriter::insert(const std::string& name, Tensor tensor) {
  detail::check_utf8(name, detail::tensor_label(name));
  if (name == detail::metadata_name) fail(name, "the name is reserved");
  if (tensor.shape.size() > detail::max_axes)
    fail(name, "more than " + std::to_string(detail::max_axes) + " axes");
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
  detail::check_header_length(text.size(), "safetensors");
  std::array<std::byte, detail::length_bytes> length;
  detail::store_element(std::uint64_t{text.size()}, length.data());
  return text.insert(0, reinterpret_cast<const char*>(length.data()), length.size());
}

FASTWEIGHTS_INLINE std::vector<std::span<const std::byte>> SafeTensorsWriter::parts(
    const std::string& header) const {
  std::vector<std::span<const std::byte>> all{std::as_bytes(std::span(header))};
  for_each_tensor([&](const std::string&, const Tensor& tensor) { all.emplace_back(tensor.data); });
  return all;
}

FASTWEIGHTS_INLINE std::vector<std::byte> SafeTensorsWriter::bytes() const {
  const std::string begin = header();
  std::vector<std::byte> all;
  for (const auto part : parts(begin)) all.insert(all.end(), part.begin(), part.end());
  return all;
}

#if FASTWEIGHTS_FILES
FASTWEIGHTS_INLINE void SafeTensorsWriter::write(const std::filesystem::path& path) const {
  const std::string begin = header();
  detail::files::replace(path, parts(begin));
}
#endif

}  // namespace fw::io
