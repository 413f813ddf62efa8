/// Parses a safetensors header: from JSON text to names, types, shapes and offsets.
///
/// The parser works on events, because a JSON document would have dropped duplicate names. It also
/// refuses nesting at the first bracket. Duplicate names of tensors are found at the end, when the
/// tensors are sorted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fastweights/core/implementation/inline.hpp"
#include "fastweights/io/implementation/json_reader.hpp"
#include "fastweights/io/implementation/json_text.hpp"
#include "fastweights/io/safetensors_format.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io::detail {

/// Receives the events of a header. Throws at the first event that the format does not allow.
class HeaderEvents {
 public:
  HeaderEvents(Header& header, std::string_view origin) : header_(header), origin_(origin) {}

  void literal(std::string_view word) { unexpected(word == "null" ? "null" : "a boolean"); }
  void other_number(std::string_view text) { unexpected(shortened(text, quote_limit)); }
  void natural_number(std::uint64_t value) {
    if (level_ == Level::shape) return add_axis(value);
    if (level_ != Level::offsets) unexpected(std::to_string(value));
    if (entry_.offsets == 2) fail("data_offsets must be [begin, end], found more numbers");
    if constexpr (sizeof(std::size_t) < sizeof value)
      if (!std::in_range<std::size_t>(value)) fail("offset overflows: " + std::to_string(value));
    (entry_.offsets++ == 0 ? entry_.tensor.begin : entry_.tensor.end) = value;
  }

  void string(std::string_view value) {
    if (level_ == Level::metadata) {
      header_.metadata.emplace(field_, value);
      return;
    }
    if (level_ != Level::tensor || field_ != "dtype") unexpected("a string");
    const std::optional<DType> type = dtype_named(value);
    if (!type) fail("unknown dtype " + json_quote(value, quote_limit));
    entry_.tensor.dtype = *type;
  }

  void start_object() {
    if (level_ == Level::outside) {
      level_ = Level::names;
    } else if (level_ == Level::names) {
      level_ = name_ == metadata_name ? Level::metadata : Level::tensor;
    } else {
      unexpected("an object");
    }
  }

  void key(std::string_view key) {
    if (level_ == Level::names) return start_name(key);
    field_ = key;
    const bool repeated =
        level_ == Level::metadata ? header_.metadata.contains(field_) : !start_field();
    if (repeated) fail("field " + json_quote(field_, quote_limit) + " appears twice");
    if (level_ == Level::metadata && header_.metadata.size() == max_metadata)
      fail("has more than " + std::to_string(max_metadata) + " entries");
  }

  void end_object() {
    if (level_ == Level::tensor) finish_entry();
    level_ = level_ == Level::names ? Level::outside : Level::names;
    name_ = {};
    in_entry_ = false;
  }

  void start_array(std::size_t position) {
    if (level_ != Level::tensor || field_ == "dtype") unexpected("an array");
    if (field_ == "shape") entry_.tensor.shape = static_cast<std::uint32_t>(position);
    level_ = field_ == "shape" ? Level::shape : Level::offsets;
  }
  void end_array() {
    if (level_ == Level::offsets && entry_.offsets != 2)
      fail("data_offsets must be [begin, end], found " + std::to_string(entry_.offsets) +
           (entry_.offsets == 1 ? " number" : " numbers"));
    level_ = Level::tensor;
  }

  [[noreturn]] void syntax_error(const std::string& what) {
    if (!in_entry_) fail_header(what);
    fail(what);
  }

 private:
  enum class Level { outside, names, metadata, tensor, shape, offsets };

  // The tensor being read, and which of its fields the text has had.
  struct Entry {
    Header::Tensor tensor{};
    bool has_dtype = false, has_shape = false, has_offsets = false;
    std::size_t axes = 0, offsets = 0;  // numbers so far
  };

  [[noreturn]] void fail_header(const std::string& what) const {
    detail::fail(origin_, "header: " + what);
  }

  [[noreturn]] void fail(const std::string& what) const {
    const bool is_metadata = name_ == metadata_name;
    detail::fail(origin_,
                 (is_metadata ? std::string(metadata_name) : tensor_label(name_)) + ": " + what);
  }

  [[noreturn]] void unexpected(const std::string& found) const {
    if (level_ == Level::metadata)
      fail(json_quote(field_, quote_limit) + " must be a string, found " + found);
    if (level_ == Level::shape) fail("shape holds non-negative integers, found " + found);
    if (level_ == Level::offsets) fail("data_offsets hold non-negative integers, found " + found);
    if (level_ == Level::tensor)
      fail(std::string(field_) + " must be " + (field_ == "dtype" ? "a string" : "an array") +
           ", found " + found);
    fail("expected an object, found " + found);
  }

  void start_name(std::string_view name) {
    name_ = name;
    in_entry_ = true;
    entry_ = {};
    entry_.tensor.name = {static_cast<std::uint32_t>(name.data() - header_.text.data()),
                          static_cast<std::uint32_t>(name.size())};
    if (name == metadata_name && std::exchange(seen_metadata_, true))
      fail("the name appears twice");
  }

  // Returns false for the second field of this name.
  bool start_field() {
    if (field_ == "dtype") return !std::exchange(entry_.has_dtype, true);
    if (field_ == "shape") return !std::exchange(entry_.has_shape, true);
    if (field_ == "data_offsets") return !std::exchange(entry_.has_offsets, true);
    fail("unknown field " + json_quote(field_, quote_limit));
  }

  void add_axis(std::uint64_t length) {
    if (!std::in_range<Eigen::Index>(length)) fail("shape overflows: " + std::to_string(length));
    if (++entry_.axes > max_axes) fail("shape has more than " + std::to_string(max_axes) + " axes");
  }

  void finish_entry() {
    const auto require = [&](bool present, const char* field) {
      if (!present) fail("field \"" + std::string(field) + "\" is missing");
    };
    require(entry_.has_dtype, "dtype");
    require(entry_.has_shape, "shape");
    require(entry_.has_offsets, "data_offsets");
    header_.tensors.push_back(entry_.tensor);
  }

  Header& header_;
  std::string_view origin_;
  Level level_ = Level::outside;
  bool seen_metadata_ = false;
  bool in_entry_ = false;   // behind the name of a tensor, or behind "__metadata__"
  std::string_view name_;   // the tensor being read, or "__metadata__"
  std::string_view field_;  // the field being read, or the key of the metadata
  Entry entry_;
};

/// Refuses NUL, which other readers take for the end, and padding other than spaces.
inline void check_header_text(std::string_view text, std::string_view origin) {
  const std::size_t nul = text.find('\0');
  if (nul != text.npos) fail(origin, "header: NUL at byte " + std::to_string(nul));
  const std::size_t last = text.find_last_not_of(' ');
  if (text[last] != '}')
    fail(origin, "header: only spaces may follow the closing '}', found another byte at " +
                     std::to_string(last));
}

inline void sort_tensors(Header& header, std::string_view origin) {
  const auto name = [&](const Header::Tensor& tensor) { return header.name(tensor); };
  auto& tensors = header.tensors;
  std::sort(tensors.begin(), tensors.end(),
            [&](const auto& a, const auto& b) { return name(a) < name(b); });
  const auto repeated =
      std::adjacent_find(tensors.begin(), tensors.end(),
                         [&](const auto& a, const auto& b) { return name(a) == name(b); });
  if (repeated != tensors.end())
    fail(origin, tensor_label(name(*repeated)) + ": the name appears twice");
}

FASTWEIGHTS_INLINE Header parse_header(std::string text, std::string_view origin) {
  check_header_text(text, origin);
  Header header;
  header.text = std::move(text);
  HeaderEvents events(header, origin);
  JsonReader(header.text, events).read();
  sort_tensors(header, origin);
  return header;
}

}  // namespace fw::io::detail
