/// Parses a safetensors header: from JSON text to names, types, shapes and offsets.
///
/// The parser works on events, because a JSON document would have dropped duplicate names. It also
/// refuses nesting at the first bracket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fastweights/core/implementation/inline.hpp"
#include "fastweights/io/implementation/json_reader.hpp"
#include "fastweights/io/implementation/json_text.hpp"
#include "fastweights/io/safetensors_format.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io::detail {

/// Receives the events of a header. Throws at the first event that the format does not allow.
class HeaderEvents : public JsonEvents {
 public:
  explicit HeaderEvents(Header& header) : header_(header) {}
  virtual ~HeaderEvents() = default;

  void literal(std::string_view word) override {
    unexpected(word == "null" ? "null" : "a boolean");
  }
  void other_number(std::string_view text) override { unexpected(std::string(text)); }
  void natural_number(std::uint64_t value) override {
    if (level_ == Level::shape) return add_axis(value);
    if (level_ != Level::offsets) unexpected(std::to_string(value));
    entry_.offsets->push_back(value);
  }

  void string(std::string value) override {
    if (level_ == Level::metadata) {
      header_.metadata.emplace(field_, std::move(value));
      return;
    }
    if (level_ != Level::tensor || field_ != "dtype") unexpected("a string");
    entry_.dtype = dtype_named(value);
    if (!entry_.dtype) fail("unknown dtype " + json_quote(value));
  }

  void start_object() override {
    if (level_ == Level::outside) {
      level_ = Level::names;
    } else if (level_ == Level::names) {
      level_ = name_ == metadata_name ? Level::metadata : Level::tensor;
    } else {
      unexpected("an object");
    }
  }

  void key(std::string key) override {
    if (level_ == Level::names) return start_name(key);
    field_ = std::move(key);
    const bool repeated =
        level_ == Level::metadata ? header_.metadata.contains(field_) : has(field_);
    if (repeated) fail("field " + json_quote(field_) + " appears twice");
  }

  void end_object() override {
    if (level_ == Level::tensor) header_.tensors.emplace(name_, finished_entry());
    level_ = level_ == Level::names ? Level::outside : Level::names;
    name_.clear();
  }

  void start_array() override {
    if (level_ != Level::tensor || field_ == "dtype") unexpected("an array");
    if (field_ == "shape") {
      entry_.shape.emplace();
      level_ = Level::shape;
    } else {
      entry_.offsets.emplace();
      level_ = Level::offsets;
    }
  }
  void end_array() override { level_ = Level::tensor; }

  /// Reports an error of JSON syntax and names the tensor that contains it.
  [[noreturn]] void fail_syntax(const std::string& what) const {
    if (name_.empty()) fail_header(what);
    fail(what);
  }

 private:
  enum class Level { outside, names, metadata, tensor, shape, offsets };

  struct Entry {
    std::optional<DType> dtype;
    std::optional<Shape> shape;
    std::optional<std::vector<std::uint64_t>> offsets;
  };

  [[noreturn]] static void fail_header(const std::string& what) {
    throw SafeTensorsError("header: " + what);
  }

  [[noreturn]] void fail(const std::string& what) const {
    const bool is_metadata = name_ == metadata_name;
    throw SafeTensorsError((is_metadata ? name_ : tensor_label(name_)) + ": " + what);
  }

  [[noreturn]] void unexpected(const std::string& found) const {
    switch (level_) {
      case Level::outside:
        fail_header("expected an object, found " + found);
      case Level::names:
        fail("expected an object, found " + found);
      case Level::metadata:
        fail(json_quote(field_) + " must be a string, found " + found);
      case Level::shape:
        fail("shape holds non-negative integers, found " + found);
      case Level::offsets:
        fail("data_offsets hold non-negative integers, found " + found);
      case Level::tensor:
        break;
    }
    fail(field_ + " must be " + (field_ == "dtype" ? "a string" : "an array") + ", found " + found);
  }

  void start_name(const std::string& name) {
    name_ = name;
    entry_ = {};
    const bool repeated = name == metadata_name ? seen_metadata_ : header_.tensors.contains(name);
    if (repeated) fail("the name appears twice");
    seen_metadata_ = seen_metadata_ || name == metadata_name;
  }

  bool has(const std::string& field) const {
    if (field == "dtype") return entry_.dtype.has_value();
    if (field == "shape") return entry_.shape.has_value();
    if (field == "data_offsets") return entry_.offsets.has_value();
    fail("unknown field " + json_quote(field));
  }

  void add_axis(std::uint64_t length) {
    if (!std::in_range<Eigen::Index>(length)) fail("shape overflows: " + std::to_string(length));
    entry_.shape->push_back(static_cast<Eigen::Index>(length));
  }

  TensorInfo finished_entry() {
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      if (!has(field)) fail("field " + json_quote(field) + " is missing");
    }
    const std::vector<std::uint64_t>& offsets = *entry_.offsets;
    if (offsets.size() != 2) {
      fail("data_offsets must be [begin, end], found " + std::to_string(offsets.size()) +
           " numbers");
    }
    for (const std::uint64_t offset : offsets) {
      if (!std::in_range<std::size_t>(offset)) fail("offset overflows: " + std::to_string(offset));
    }
    return {*entry_.dtype, std::move(*entry_.shape), static_cast<std::size_t>(offsets[0]),
            static_cast<std::size_t>(offsets[1])};
  }

  Header& header_;
  Level level_ = Level::outside;
  bool seen_metadata_ = false;
  std::string name_;   // the tensor being read, or "__metadata__"
  std::string field_;  // the field being read, or the key of the metadata
  Entry entry_;
};

/// Refuses NUL, which other readers take for the end, and padding other than spaces.
inline void check_header_text(std::string_view text) {
  if (text.empty() || text.front() != '{') {
    throw SafeTensorsError("header: does not start with '{'");
  }
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    throw SafeTensorsError("header: NUL at byte " + std::to_string(nul));
  }
  const std::size_t last = text.find_last_not_of(' ');
  if (text[last] != '}') {
    throw SafeTensorsError(
        "header: only spaces may follow the closing '}', found another byte at " +
        std::to_string(last));
  }
}

FASTWEIGHTS_INLINE Header parse_header(std::string_view text) {
  check_header_text(text);
  Header header;
  HeaderEvents events(header);
  try {
    JsonReader(text, events).read();
  } catch (const JsonError& error) {
    events.fail_syntax(error.what());
  }
  return header;
}

}  // namespace fw::io::detail
