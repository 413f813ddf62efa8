// The JSON of headers: characters, strings and numbers.

#include <fastweights/io/implementation/json_reader.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

namespace json = fw::io::detail;
using namespace std::string_literals;

// Writes the parts of a text down, separated by spaces.
struct Parts {
  std::string all;
  void add(std::string_view part) { all.append(all.empty() ? "" : " ").append(part); }
  void start_object() { add("{"); }
  void key(std::string_view name) { add(name.empty() ? "-" : name); }
  void end_object() { add("}"); }
  void start_array(std::size_t position) { add("[" + std::to_string(position)); }
  void end_array() { add("]"); }
  void string(std::string_view value) { add("\"" + std::string(value)); }
  void natural_number(std::uint64_t value) { add("n" + std::to_string(value)); }
  void other_number(std::string_view text) { add("o" + std::string(text)); }
  void literal(std::string_view word) { add(word); }
  [[noreturn]] void syntax_error(const std::string& what) { throw std::runtime_error(what); }
};

std::string parts_of(std::string text) {
  Parts parts;
  try {
    json::JsonReader(text, parts).read();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return parts.all;
}

std::string error_at(int byte, const std::string& what) {
  return "parse error at byte " + std::to_string(byte) + ": " + what;
}

}  // namespace

TEST_CASE("JSON: a text is read as its parts in order", "[json]") {
  CHECK(parts_of(" { \"a\" :\t[ 1 , -2.5 ] ,\r\n \"\" : null } ") == "{ a [9 n1 o-2.5 ] - null }");
  CHECK(parts_of("[]") == "[0 ]");
  CHECK(parts_of("{}") == "{ }");
  CHECK(parts_of("[true,false]") == "[0 true false ]");
  CHECK(parts_of("18446744073709551615") == "n18446744073709551615");
  CHECK(parts_of("18446744073709551616") == "o18446744073709551616");
  for (const char* number : {"-0", "0.5", "1e5", "1E+5", "1e-5", "-12.25e7", "1e999"})
    CHECK(parts_of(number) == "o"s + number);
}

TEST_CASE("JSON: strings are decoded in place", "[json]") {
  CHECK(parts_of(R"("\"\\\/\b\f\n\r\t")") == "\"\"\\/\b\f\n\r\t");
  CHECK(parts_of(R"("\u0041\u00e9\u20ac\uffff\ud83d\ude00!")") ==
        "\"A\u00e9\u20ac\uffff\U0001F600!");
  CHECK(parts_of("\"\\u0000\"") == "\"\0"s);
  // The first and last code points around and of surrogate pairs.
  CHECK(parts_of(R"("\ud7ff\ue000\ud800\udc00\udbff\udfff")") ==
        "\"\xed\x9f\xbf\xee\x80\x80\U00010000\U0010ffff");
  std::string text = R"(["\u00e9x","y"])";
  Parts parts;
  json::JsonReader(text, parts).read();
  CHECK(parts.all == "[0 \"\u00e9x \"y ]");
}

TEST_CASE("JSON: an error says at which byte", "[json]") {
  CHECK(parts_of("") == error_at(0, "expected a value"));
  CHECK(parts_of("{} x") == error_at(3, "expected the end"));
  CHECK(parts_of("[1") == error_at(2, "expected ']'"));
  CHECK(parts_of("\"abc") == error_at(4, "a string does not end"));
  CHECK(parts_of("\"\\") == error_at(2, "an unknown escape"));
  CHECK(parts_of("\"\\q\"") == error_at(2, "an unknown escape"));
  CHECK(parts_of("\"\\\0\""s) == error_at(2, "an unknown escape"));
  CHECK(parts_of("\"\x1f\"") == error_at(1, "a control character in a string"));
  CHECK(parts_of("\"\\u12") == error_at(3, "expected four hexadecimal digits"));
  CHECK(parts_of("\"\\u1234") == error_at(7, "a string does not end"));
  CHECK(parts_of("\"\\u12g4\"") == error_at(3, "expected four hexadecimal digits"));
  for (const char* half : {"\"\\udc00\"", "\"\\ud800\"", "\"\\ud800\\n\"", "\"\\ud800\\u0041\"",
                           "\"\\ud800\\ue000\""}) {
    INFO(half);
    CHECK(parts_of(half).find("half of a surrogate pair") != std::string::npos);
  }
  CHECK(parts_of("-") == error_at(1, "expected a digit"));
  CHECK(parts_of("01") == error_at(1, "expected the end"));
  CHECK(parts_of("1.x") == error_at(2, "expected a digit"));
  CHECK(parts_of("1e") == error_at(2, "expected a digit"));
  CHECK(parts_of("nul") == error_at(0, "expected a value"));
}

TEST_CASE("JSON: UTF-8 as in the standard", "[json]") {
  const auto valid = [](const std::string& text) {
    return json::utf8_length(text, 0) == text.size();
  };
  for (const char* text :
       {"\x01", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xe1\x80\x80", "\xed\x9f\xbf",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf1\x80\x80\x80", "\xf4\x8f\xbf\xbf"})
    CHECK(valid(text));
  CHECK(json::utf8_length("", 0) == 0);
  for (const char* text : {"\x80",
                           "\xbf",
                           "\xc0\x80",
                           "\xc1\xbf",
                           "\xc2",
                           "\xc2\x7f",
                           "\xc2\xc0",
                           "\xe0\x9f\xbf",
                           "\xe0\xa0",
                           "\xe1\x80\xc0",
                           "\xe1\xc0\x80",
                           "\xed\xa0\x80",
                           "\xf0\x8f\xbf\xbf",
                           "\xf0\x90\x80",
                           "\xf0\x90\x80\x7f",
                           "\xf0\x90\x7f\x80",
                           "\xf1\xc0\x80\x80",
                           "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80",
                           "\xff"}) {
    CHECK(json::utf8_length(text, 0) == 0);
    CHECK_FALSE(json::is_utf8(text));
  }
  CHECK(json::is_utf8("a\u00e9\u20ac\U0001F600"));
}

TEST_CASE("JSON: strings are quoted, cut and repaired", "[json]") {
  CHECK(json::json_quote("a\"\\\b\f\n\r\t\x01\x1f") == R"("a\"\\\b\f\n\r\t\u0001\u001f")");
  CHECK(json::json_quote("a b\x7f") == "\"a b\x7f\"");
  CHECK(json::json_quote("\xff\u00e9") == "\"\ufffd\u00e9\"");
  CHECK(json::json_quote("abcdef", 3) == "\"abc...\"");
  CHECK(json::json_quote("abc", 3) == "\"abc\"");
  CHECK(json::shortened("abc", 3) == "abc");
  CHECK(json::shortened("abcdefg", 6) == "abc...");
  CHECK(json::shortened("ab\u00e9efg", 6) == "ab...");
  CHECK(json::shortened(std::string(9, '\x80'), 6) == "...");
}
