#pragma once

#include <algorithm>
#include <cstdint>
#include <fastweights/core/errors.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <vector>

/// \file
/// JSON of files that may be hostile. Needs nlohmann-json.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Checks a text before it is read into memory. (The callbacks of nlohmann::json::parse would do,
/// but they take quadratic time in a list of objects.)
class JsonChecks : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// `where` is what errors begin with.
  JsonChecks(const std::string& text, const std::string& where) : text_(text), where_(where) {}

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  bool number_float(number_float_t, const string_t&) override { return count(); }
  bool string(string_t&) override { return count(); }
  bool binary(binary_t&) override { return count(); }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  /// Refuses a name that an object has twice.
  bool key(string_t& name) override {
    if (!names_.back().insert(name).second)
      fail("the name " + name.substr(0, 60) + " is there twice");
    keys_.back() = name.substr(0, 60);
    return true;
  }
  /// Throws std::invalid_argument with the place.
  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::json::exception&) override {
    fail("is not JSON, byte " + std::to_string(byte) + number_of_python(byte));
  }

 private:
  bool count() {
    if (++values_ > 1 << 23) fail("has more than 2^23 values");
    return true;
  }
  bool open() {
    if (names_.size() == 32) fail("has more than 32 levels");
    names_.emplace_back();
    keys_.emplace_back();
    return count();
  }
  bool close() {
    names_.pop_back();
    keys_.pop_back();
    return true;
  }
  // Python's json writes numbers that JSON does not have. The one at this byte, with its name.
  std::string number_of_python(std::size_t byte) const {
    if (byte < 1 || byte > text_.size()) return "";
    const std::size_t at = byte - 1;
    for (const std::string word : {"Infinity", "NaN"}) {
      if (text_.compare(at, word.size(), word) != 0) continue;
      const bool negative = at > 0 && text_[at - 1] == '-';
      const auto key = std::find_if(keys_.rbegin(), keys_.rend(),
                                    [](const std::string& name) { return !name.empty(); });
      return (key == keys_.rend() ? ": " : ": " + *key + " has ") + (negative ? "-" : "") + word +
             ", expected a finite number";
    }
    return "";
  }
  [[noreturn]] void fail(const std::string& what) const {
    fw::detail::throw_invalid({where_, ": ", what});
  }

  const std::string &text_, &where_;
  std::vector<std::unordered_set<std::string>> names_;  // of what is open
  std::vector<std::string> keys_;                       // the last of each
  long values_ = 0;
};

/// Throws std::invalid_argument if the text is not JSON, has a name twice in an object, more than
/// 32 levels, or more than 2^23 values. Takes at most 32 bytes on the heap for a byte of the text,
/// whatever it says.
inline nlohmann::json parse_strictly(const std::string& text, const std::string& where) {
  JsonChecks checks(text, where);
  nlohmann::json::sax_parse(text, &checks);
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) fw::detail::throw_invalid({where, ": is not JSON"});
  return json;
}

/// The bytes of a file of at most `most_bytes`. Throws std::invalid_argument.
inline std::string text_of_file(const std::filesystem::path& file, std::uintmax_t most_bytes) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error) fw::detail::throw_invalid({file.string(), ": cannot be read: ", error.message()});
  if (size > most_bytes)
    fw::detail::throw_invalid(
        {file.string(), ": has more than ", std::to_string(most_bytes), " bytes"});
  std::string text(static_cast<std::size_t>(size), '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(size));
  if (!stream) fw::detail::throw_invalid({file.string(), ": cannot be read"});
  return text;
}

}  // namespace fw::models
