#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Mutations of safetensors files that know their structure: the header's text, its numbers, types
/// and tensors, and the data. The length in front of the header is made right again, mostly, so
/// that mutations get past it.

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max);

namespace fuzz {

class Mutator {
 public:
  /// `selector` bytes stand in front of the file.
  Mutator(const std::uint8_t* bytes, std::size_t size, std::size_t selector, unsigned seed)
      : random_(seed), all_(bytes, bytes + size), selector_(selector) {
    all_.resize(std::max(size, selector));
    const std::size_t begin = selector + 8;
    std::uint64_t length = 0;
    if (all_.size() >= begin) std::memcpy(&length, &all_[selector], 8);
    const std::size_t rest = all_.size() > begin ? all_.size() - begin : 0;
    const auto middle = static_cast<std::size_t>(std::min<std::uint64_t>(length, rest));
    if (rest > 0) {
      const auto text = all_.begin() + static_cast<std::ptrdiff_t>(begin);
      header_.assign(text, text + static_cast<std::ptrdiff_t>(middle));
      data_.assign(text + static_cast<std::ptrdiff_t>(middle), all_.end());
    }
  }

  std::vector<std::uint8_t> run() {
    if (below(20) == 0) return mutated(all_);
    const std::size_t times = 1 + below(3);
    for (std::size_t i = 0; i < times; ++i) mutate_once();
    std::uint64_t length = header_.size();
    if (below(50) == 0) length = random_word(length);
    std::vector<std::uint8_t> out(all_.begin(),
                                  all_.begin() + static_cast<std::ptrdiff_t>(selector_));
    if (!out.empty() && below(20) == 0) out[0] = static_cast<std::uint8_t>(random_());
    const auto* raw = reinterpret_cast<const std::uint8_t*>(&length);
    out.insert(out.end(), raw, raw + 8);
    out.insert(out.end(), header_.begin(), header_.end());
    out.insert(out.end(), data_.begin(), data_.end());
    return out;
  }

 private:
  using Bytes = std::vector<std::uint8_t>;

  void mutate_once() {
    switch (below(11)) {
      case 0: {
        const Bytes text = mutated(Bytes(header_.begin(), header_.end()));
        header_.assign(text.begin(), text.end());
        return;
      }
      case 1:
        data_ = mutated(data_);
        return;
      case 2:
        header_.insert(below(header_.size() + 1), one_of(tokens));
        return;
      case 3:
        return replace_number();
      case 4:
        return repeat_part();
      case 5:
        header_.erase(std::min(header_.size(), below(header_.size() + 1)), 1 + below(16));
        return;
      case 6:
        return replace_type();
      case 7:
        return append_tensor();
      case 8:
        return fit_data();
      case 9:
        data_.resize(below(80));
        return;
      default:
        return replace_word();
    }
  }

  // Decimal numbers in the header: shapes, offsets and what stands in names.
  void replace_number() {
    std::vector<std::size_t> begins;
    for (std::size_t i = 0; i < header_.size(); ++i)
      if (is_digit(i) && (i == 0 || !is_digit(i - 1))) begins.push_back(i);
    if (begins.empty()) return;
    const std::size_t begin = begins[below(begins.size())];
    std::size_t end = begin;
    while (end < header_.size() && is_digit(end)) ++end;
    std::string number(one_of(numbers));
    if (below(2) == 0 && end - begin < 18)
      number = std::to_string(std::stoll(header_.substr(begin, end - begin)) +
                              static_cast<long long>(below(17)) - 8);
    header_.replace(begin, end - begin, number);
  }

  void repeat_part() {
    const char opening = below(2) == 0 ? '{' : '[';
    const std::size_t begin = header_.find(opening, below(header_.size() + 1));
    const std::size_t end = header_.find(opening == '{' ? '}' : ']', begin);
    if (begin == header_.npos || end == header_.npos || header_.size() > 4096) return;
    std::string part = header_.substr(begin, end + 1 - begin);
    if (below(2) == 0) part = ",\"n" + std::to_string(below(9)) + "\":" + part;
    header_.insert(below(3) == 0 ? below(header_.size() + 1) : end + 1, part);
  }

  void replace_type() {
    constexpr std::string_view field = "\"dtype\":\"";
    const std::size_t at = header_.find(field, below(header_.size() + 1));
    const std::size_t end = header_.find('"', at == header_.npos ? at : at + field.size());
    if (end == header_.npos) return;
    header_.replace(at + field.size(), end - at - field.size(), one_of(types));
  }

  // A tensor that fits behind the data.
  void append_tensor() {
    const std::size_t end = header_.rfind('}');
    if (end == header_.npos || header_.size() > 4096) return;
    constexpr std::size_t widths[] = {4, 8, 2, 2, 8, 1};  // of the first types
    const std::size_t rows = below(4), columns = below(4), type = below(std::size(widths));
    const std::size_t size = rows * columns * widths[type];
    std::string text = header_[0] == '{' && end > 1 ? ",\"t" : "\"t";
    text += std::to_string(below(30)) + "\":{\"dtype\":\"" + std::string(types[type]) +
            "\",\"shape\":[" + std::to_string(rows) + "," + std::to_string(columns) +
            "],\"data_offsets\":[" + std::to_string(data_.size()) + "," +
            std::to_string(data_.size() + size) + "]}";
    header_.insert(end, text);
    for (std::size_t i = 0; i < size; ++i) data_.push_back(static_cast<std::uint8_t>(random_()));
  }

  // As much data as the largest offset.
  void fit_data() {
    constexpr std::string_view field = "data_offsets\":[";
    std::size_t largest = 0;
    for (std::size_t at = header_.find(field); at != header_.npos; at = header_.find(field, at + 1))
      if (const std::size_t comma = header_.find(',', at); comma != header_.npos)
        largest =
            std::max<std::size_t>(largest, std::strtoul(header_.c_str() + comma + 1, nullptr, 10));
    if (largest <= 4096) data_.resize(largest);
  }

  // Eight bytes of data, such as a counter.
  void replace_word() {
    if (data_.size() < 8) return;
    std::size_t at = below(data_.size() - 7);
    if (below(4) != 0) at -= at % 8;
    std::uint64_t word = 0;
    std::memcpy(&word, &data_[at], 8);
    word = random_word(word);
    std::memcpy(&data_[at], &word, 8);
  }

  std::uint64_t random_word(std::uint64_t old) {
    switch (below(5)) {
      case 0:
        return old + below(9) - 4;
      case 1:
        return std::uint64_t{1} << below(64);
      case 2:
        return (std::uint64_t{1} << below(64)) - 1;
      case 3:
        return ~(std::uint64_t{1} << below(64));
      default:
        return std::uint64_t{random_()} << 40U ^ std::uint64_t{random_()} << 20U ^ random_();
    }
  }

  static Bytes mutated(Bytes bytes) {
    const std::size_t size = bytes.size();
    bytes.resize(size + 64);
    bytes.resize(LLVMFuzzerMutate(bytes.data(), size, bytes.size()));
    return bytes;
  }

  std::size_t below(std::size_t n) { return random_() % n; }
  template <std::size_t N> std::string_view one_of(const std::string_view (&all)[N]) {
    return all[below(N)];
  }
  bool is_digit(std::size_t i) const {
    return std::isdigit(static_cast<unsigned char>(header_[i])) != 0;
  }

  static constexpr std::string_view types[] = {
      "F32", "F64",     "F16",     "BF16", "I64",         "U8",          "BOOL",
      "I8",  "U16",     "I16",     "U32",  "I32",         "U64",         "F8_E4M3",
      "C64", "F8_E5M2", "F8_E8M0", "F4",   "F8_E4M3FNUZ", "F8_E5M2FNUZ", "f32"};
  static constexpr std::string_view numbers[] = {"0",
                                                 "1",
                                                 "2",
                                                 "3",
                                                 "4",
                                                 "6",
                                                 "7",
                                                 "8",
                                                 "12",
                                                 "16",
                                                 "24",
                                                 "32",
                                                 "48",
                                                 "64",
                                                 "-1",
                                                 "-0",
                                                 "00",
                                                 "1.5",
                                                 "1e3",
                                                 "1e999",
                                                 "127",
                                                 "128",
                                                 "65535",
                                                 "65536",
                                                 "2147483648",
                                                 "4294967296",
                                                 "4611686018427387903",
                                                 "4611686018427387904",
                                                 "9223372036854775807",
                                                 "9223372036854775808",
                                                 "18446744073709551615",
                                                 "18446744073709551616"};
  static constexpr std::string_view tokens[] = {
      "{",
      "}",
      "[",
      "]",
      ":",
      ",",
      "\"",
      " ",
      "\n",
      "\\",
      "\\u0000",
      "\\ud800",
      "\\ud83d\\ude00",
      "\\u00e9",
      "\\\"",
      "\xff",
      "\xc0\x80",
      "\xed\xa0\x80",
      "\xef\xbb\xbf",
      "\xf0\x9f\x98\x80",
      "null",
      "true",
      "false",
      "NaN",
      "-Infinity",
      "/*",
      "//",
      "[]",
      "{}",
      "[[",
      "\"\"",
      "\"dtype\":",
      "\"shape\":",
      "\"data_offsets\":",
      "\"__metadata__\":",
      "\"__metadata__\":{},",
      "\"k\":\"v\",",
      "\"x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},",
      "[4294967296,4294967296]",
      "[0,9223372036854775807]",
      "1,1,1,1,1,1,1,1,",
      "PK\x03\x04"};

  std::minstd_rand random_;
  Bytes all_;
  std::size_t selector_;
  std::string header_;
  Bytes data_;
};

inline std::size_t mutate(std::uint8_t* bytes, std::size_t size, std::size_t max,
                          std::size_t selector, unsigned seed) {
  std::vector<std::uint8_t> out = Mutator(bytes, size, selector, seed).run();
  if (out.size() > max) out.resize(max);
  if (!out.empty()) std::memcpy(bytes, out.data(), out.size());
  return out.size();
}

}  // namespace fuzz
