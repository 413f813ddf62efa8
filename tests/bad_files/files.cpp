#include "files.hpp"

namespace {

using std::to_string;
using namespace std::string_literals;

// A file that claims a length of its header, which may be wrong.
std::string claiming(std::uint64_t length, const std::string& rest) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>((length >> (8 * i)) & 0xFF);
  return file + rest;
}

std::string with(const std::string& header, const std::string& data = "") {
  return claiming(header.size(), header + data);
}

std::string zeros(std::size_t n) { return std::string(n, '\0'); }
std::string w(const std::string& fields) { return "{\"w\":{" + fields + "}}"; }
std::string dtype(const std::string& value) { return w("\"dtype\":" + value); }
std::string shape(const std::string& value) { return w("\"shape\":" + value); }
std::string offsets(const std::string& value) { return w("\"data_offsets\":" + value); }
std::string metadata(const std::string& value) { return "{\"__metadata__\":" + value + "}"; }
std::string tensor(const std::string& type, const std::string& axes, const std::string& ends) {
  return "{\"dtype\":\"" + type + "\",\"shape\":" + axes + ",\"data_offsets\":" + ends + "}";
}
std::string w_of(const std::string& type, const std::string& axes, const std::string& ends) {
  return "{\"w\":" + tensor(type, axes, ends) + "}";
}
std::string v_and_w(const std::string& v, const std::string& w) {
  return "{\"v\":" + tensor("U8", "[4]", v) + ",\"w\":" + tensor("U8", "[4]", w) + "}";
}

std::string repeated(const std::string& part, std::size_t times) {
  std::string text;
  text.reserve(part.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}

// A header of about 2 MB: n entries that differ in a number, and one more.
template <class Entry> std::string many(std::size_t n, const Entry& entry, std::string last) {
  std::string text = "{";
  for (std::size_t i = 0; i < n; ++i) text += entry(to_string(i)) + ",";
  return text + std::move(last) + "}";
}

using List = std::vector<BadFile>;

void add_beginnings(List& list) {
  list.insert(
      list.end(),
      {{"empty", "", "holds 0 bytes, the header's length alone takes 8"},
       {"one byte", "x", "holds 1 bytes"},
       {"seven bytes", "1234567", "holds 7 bytes"},
       {"length alone", claiming(0, ""), "does not start with '{'"},
       {"length without header", claiming(2, ""), "header of 2 bytes, only 0 follow its length"},
       {"header cut by one byte", claiming(3, "{}"), "header of 3 bytes, only 2 follow its length"},
       {"header of 100 MB and one byte", claiming(100'000'001, "{}"), "exceeds the limit"},
       {"header of 2^63 bytes", claiming(std::uint64_t{1} << 63, "{}"), "exceeds the limit"},
       {"header of 2^64 - 1 bytes", claiming(~std::uint64_t{0}, "{}"), "18446744073709551615"},
       {"header of 2^64 - 8 bytes", claiming(~std::uint64_t{7}, "{}"), "exceeds the limit"},
       {"big-endian length", "\0\0\0\0\0\0\0\2{}"s, "exceeds the limit"},
       {"empty header with data", with("", "data"), "does not start with '{'"},
       {"space in front", with(" {}"), "does not start with '{'"},
       {"list", with("[]"), "does not start with '{'"},
       {"text", with("\"w\""), "does not start with '{'"},
       {"byte order mark", with("\xef\xbb\xbf{}"), "does not start with '{'"},
       {"torch.save", "PK\x03\x04\0\0\x08\x08"s + zeros(40), "zip archive, as torch.save"},
       {"PK alone", "PK", "zip archive, as torch.save"},
       {"PK and a plausible length", "PK\0\0\0\0\0\0"s + zeros(0x4b50), "zip archive"},
       {"P without K", "P\3\0\0\0\0\0\0[]"s, "only 2 follow its length"},
       {"pickle", "\x80\x02}q\0."s + zeros(40), "exceeds the limit"},
       {"GGUF", "GGUF\3\0\0\0\0\0\0\0"s, "exceeds the limit"},
       {"JSON without a length", "{\"w\":{}}", "exceeds the limit"},
       {"20 GB of zeros", "", "does not start with '{'", 20'000'000'000},
       {"bad header in 20 GB", claiming(5, "hello"), "does not start with '{'", 20'000'000'000},
       {"header of zeros", claiming(1'000'000, "{"), "NUL at byte 1", 20'000'000'000}});
}

void add_syntax(List& list) {
  list.insert(
      list.end(),
      {{"newline behind", with("{}\n"), "only spaces may follow the closing '}'"},
       {"NUL behind", with("{}\0"s), "NUL at byte 2"},
       {"NUL inside", with("{\0}"s), "NUL at byte 1"},
       {"two objects", with("{} {}"), "parse error at byte 3: expected the end"},
       {"two closing braces", with("{}}"), "parse error at byte 2: expected the end"},
       {"unclosed", with("{\"w\":{}"), "field \"dtype\" is missing"},
       {"brace alone", with("{"), "another byte at 0"},
       {"comma alone", with("{,}"), "expected a name in quotes"},
       {"comma behind", with(metadata("{},")), "expected a name in quotes"},
       {"comment", with("{/**/}"), "expected a name in quotes"},
       {"single quotes", with("{'w':{}}"), "expected a name in quotes"},
       {"name without quotes", with("{w:{}}"), "expected a name in quotes"},
       {"number as a name", with("{1:{}}"), "expected a name in quotes"},
       {"no colon", with(w("\"dtype\" \"F32\"")), "tensor \"w\": parse error at byte 14"},
       {"no value", with("{\"w\":}"), "tensor \"w\": parse error at byte 5: expected a value"},
       {"no comma", with("{\"__metadata__\":{} \"w\":{}}"), "header: parse error at byte 19"},
       {"name that does not end", with("{\"w}"), "a string does not end"},
       {"control character", with("{\"\n\":{}}"), "a control character in a string"},
       {"unknown escape", with("{\"\\x\":{}}"), "an unknown escape"},
       {"escape of three digits", with("{\"\\u123\":{}}"), "expected four hexadecimal digits"},
       {"escape with a sign", with("{\"\\u-123\":{}}"), "expected four hexadecimal digits"},
       {"first half of a pair", with("{\"\\ud800\":{}}"), "half of a surrogate pair"},
       {"second half of a pair", with("{\"\\udc00\":{}}"), "half of a surrogate pair"},
       {"two first halves", with("{\"\\ud800\\ud800\":{}}"), "half of a surrogate pair"},
       {"not UTF-8", with("{\"\xff\":{}}"), "not valid UTF-8"},
       {"overlong UTF-8", with("{\"\xc0\x80\":{}}"), "not valid UTF-8"},
       {"surrogate in UTF-8", with("{\"\xed\xa0\x80\":{}}"), "not valid UTF-8"},
       {"UTF-8 beyond U+10FFFF", with("{\"\xf4\x90\x80\x80\":{}}"), "not valid UTF-8"},
       {"cut UTF-8", with("{\"w\":{\"dtype\":\"\xc3\"}}"), "tensor \"w\": parse error"},
       {"leading zero", with(shape("[01]")), "tensor \"w\": parse error"},
       {"plus sign", with(shape("[+1]")), "expected a value"},
       {"minus alone", with(shape("[-]")), "expected a digit"},
       {"point without digits", with(shape("[1.]")), "expected a digit"},
       {"exponent without digits", with(shape("[1e]")), "expected a digit"},
       {"NaN", with(shape("[NaN]")), "expected a value"},
       {"word in capitals", with(dtype("NULL")), "expected a value"},
       {"deep nesting of lists", with("{\"w\":" + repeated("[", 1'000'000) + "}"),
        "tensor \"w\": expected an object, found an array"},
       {"deep nesting of objects", with(repeated("{\"a\":", 300'000) + "}"),
        "tensor \"a\": unknown field \"a\""}});
}

void add_fields(List& list) {
  list.insert(
      list.end(),
      {{"no dtype", with(w(R"("shape":[0],"data_offsets":[0,0])")), "\"dtype\" is missing"},
       {"no shape", with(w(R"("dtype":"U8","data_offsets":[0,0])")), "\"shape\" is missing"},
       {"no offsets", with(w(R"("dtype":"U8","shape":[0])")), "\"data_offsets\" is missing"},
       {"unknown field", with(w("\"stride\":[1]")), "unknown field \"stride\""},
       {"field in capitals", with(w("\"Shape\":[1]")), "unknown field \"Shape\""},
       {"two dtypes", with(w(R"("dtype":"U8","dtype":"U8")")), "\"dtype\" appears twice"},
       {"two shapes", with(w(R"("shape":[1],"shape":[1])")), "\"shape\" appears twice"},
       {"two offsets", with(w(R"("data_offsets":[0,1],"data_offsets":[0,1])")), "appears twice"},
       {"tensor is null", with("{\"w\":null}"), "tensor \"w\": expected an object, found null"},
       {"tensor is a list", with("{\"w\":[]}"), "expected an object, found an array"},
       {"tensor is a number", with("{\"w\":4}"), "expected an object, found 4"},
       {"tensor is a text", with("{\"w\":\"F32\"}"), "expected an object, found a string"},
       {"unknown dtype", with(dtype("\"F33\"")), "tensor \"w\": unknown dtype \"F33\""},
       {"dtype in small letters", with(dtype("\"f32\"")), "unknown dtype \"f32\""},
       {"complex dtype", with(dtype("\"C64\"")), "unknown dtype \"C64\""},
       {"dtype of half a byte", with(dtype("\"F4\"")), "unknown dtype \"F4\""},
       {"dtype is null", with(dtype("null")), "dtype must be a string, found null"},
       {"dtype is a number", with(dtype("4")), "dtype must be a string, found 4"},
       {"dtype is a list", with(dtype("[]")), "dtype must be a string, found an array"},
       {"dtype is an object", with(dtype("{}")), "dtype must be a string, found an object"},
       {"shape is a number", with(shape("4")), "shape must be an array, found 4"},
       {"shape is a text", with(shape("\"[4]\"")), "shape must be an array, found a string"},
       {"shape is an object", with(shape("{}")), "shape must be an array, found an object"},
       {"negative axis", with(shape("[-1]")), "shape holds non-negative integers, found -1"},
       {"axis of -0", with(shape("[-0]")), "shape holds non-negative integers, found -0"},
       {"fractional axis", with(shape("[1.5]")), "non-negative integers, found 1.5"},
       {"axis as a float", with(shape("[1e0]")), "non-negative integers, found 1e0"},
       {"axis is a text", with(shape("[\"1\"]")), "non-negative integers, found a string"},
       {"axis is a list", with(shape("[[1]]")), "non-negative integers, found an array"},
       {"axis is true", with(shape("[true]")), "non-negative integers, found a boolean"},
       {"axis of 2^63", with(shape("[9223372036854775808]")), "shape overflows"},
       {"axis of 2^64", with(shape("[18446744073709551616]")), "found 18446744073709551616"},
       {"65 axes", with(shape("[1" + repeated(",1", 64) + "]")), "shape has more than 64 axes"},
       {"a million axes", with(shape("[1" + repeated(",1", 1'000'000) + "]")), "than 64 axes"},
       {"offsets are a number", with(offsets("0")), "data_offsets must be an array, found 0"},
       {"offsets are null", with(offsets("null")), "data_offsets must be an array, found null"},
       {"no offset", with(offsets("[]")), "data_offsets must be [begin, end], found 0 numbers"},
       {"one offset", with(offsets("[0]")), "data_offsets must be [begin, end], found 1 number"},
       {"three offsets", with(offsets("[0,1,2]")), "must be [begin, end], found more numbers"},
       {"a million offsets", with(offsets("[0" + repeated(",0", 1'000'000) + "]")), "more numbers"},
       {"negative offset", with(offsets("[-1,0]")), "data_offsets hold non-negative integers"},
       {"fractional offset", with(offsets("[0,0.5]")), "non-negative integers, found 0.5"}});
}

void add_names(List& list) {
  const auto u8 = tensor("U8", "[0]", "[0,0]");
  const auto numbered = [&](const std::string& i) { return "\"" + i + "\":" + u8; };
  list.insert(
      list.end(),
      {{"a name twice", with("{\"w\":" + u8 + ",\"w\":" + u8 + "}"), "the name appears twice"},
       {"a name twice, once escaped", with("{\"w\":" + u8 + ",\"\\u0077\":" + u8 + "}"),
        "tensor \"w\": the name appears twice"},
       {"the first of many names twice", with(many(40'000, numbered, "\"0\":" + u8)),
        "tensor \"0\": the name appears twice"},
       {"many names and one bad type", with(many(40'000, numbered, "\"x\":4")),
        "tensor \"x\": exp"},
       {"many names and a hole",
        with(many(40'000, numbered, "\"x\":" + tensor("U8", "[1]", "[1,2]")), "ab"),
        "tensor \"x\": data_offsets [1, 2] leave a hole"},
       {"name of 2 MB", with("{\"" + repeated("n", 2'000'000) + "\":4}"), "nnn...\": expected an"},
       {"name of 2 MB of escapes", with("{\"" + repeated("\\n", 1'000'000) + "\":4}"),
        "expected an"},
       {"dtype of 2 MB", with(dtype("\"" + repeated("F", 2'000'000) + "\"")), "unknown dtype \"FF"},
       {"field of 2 MB", with(w("\"" + repeated("F", 2'000'000) + "\":1")), "unknown field \"FFF"},
       {"number of 2 MB", with(shape("[" + repeated("9", 2'000'000) + "]")), "found 999"},
       {"metadata twice", with("{\"__metadata__\":{},\"__metadata__\":{}}"),
        "__metadata__: the name appears twice"},
       {"metadata is null", with(metadata("null")), "__metadata__: expected an object, found null"},
       {"metadata is a text", with(metadata("\"t\"")), "expected an object, found a string"},
       {"metadata holds a number", with(metadata("{\"k\":1}")), "\"k\" must be a string, found 1"},
       {"metadata holds an object", with(metadata("{\"k\":{}}")), "must be a string, found an obj"},
       {"metadata holds null", with(metadata("{\"k\":null}")),
        "\"k\" must be a string, found null"},
       {"metadata key twice", with(metadata(R"({"k":"1","k":"2"})")), "\"k\" appears twice"},
       {"much metadata",
        with(metadata(many(
            200'000, [](const std::string& i) { return "\"" + i + "\":\"\""; }, "\"k\":\"\""))),
        "__metadata__: has more than 4096 entries"},
       {"metadata of 2 MB, then no tensor",
        with("{\"__metadata__\":{\"k\":\"" + repeated("v", 2'000'000) + "\"}}", "x"),
        "no tensors: 1 trailing bytes"}});
}

void add_layouts(List& list) {
  list.insert(
      list.end(),
      {{"shape of 2^64 bytes", with(w_of("U8", "[4294967296,4294967296]", "[0,0]")), "overflows"},
       {"shape of 2^64 bytes and 0", with(w_of("U8", "[4294967296,4294967296,0]", "[0,0]")),
        "tensor \"w\": shape [4294967296, 4294967296, 0] overflows"},
       {"0 and a shape of 2^64 bytes", with(w_of("U8", "[0,4294967296,4294967296]", "[0,0]")),
        "overflows"},
       {"2^61 doubles", with(w_of("F64", "[2305843009213693952]", "[0,0]")), "overflows"},
       {"offsets backwards", with(w_of("F32", "[1]", "[4,0]"), zeros(4)), "begin after their end"},
       {"data cut by one byte", with(w_of("F32", "[2,3]", "[0,24]"), zeros(23)),
        "tensor \"w\": data_offsets [0, 24] reach beyond the 23 bytes of data"},
       {"no data", with(w_of("F32", "[1]", "[0,4]")), "reach beyond the 0 bytes of data"},
       {"end of 2^64 - 1", with(w_of("U8", "[1]", "[0,18446744073709551615]"), "x"),
        "reach beyond"},
       {"both offsets 2^64 - 1",
        with(w_of("U8", "[0]", "[18446744073709551615,18446744073709551615]")), "reach beyond"},
       {"less data than the shape", with(w_of("F32", "[2,3]", "[0,20]"), zeros(20)),
        "hold 20 bytes, F32 of shape [2, 3] needs 24"},
       {"more data than the shape", with(w_of("F32", "[2,3]", "[0,28]"), zeros(28)),
        "hold 28 bytes, F32 of shape [2, 3] needs 24"},
       {"scalar without data", with(w_of("F64", "[]", "[0,0]")), "F64 of shape [] needs 8"},
       {"empty tensor with data", with(w_of("F64", "[0]", "[0,8]"), zeros(8)), "needs 0"},
       {"long shape", with(w_of("U8", "[1" + repeated(",1000", 60) + "]", "[0,1]"), "x"), "overfl"},
       {"hole at the beginning", with(v_and_w("[1,5]", "[5,9]"), zeros(9)),
        "tensor \"v\": data_offsets [1, 5] leave a hole after the data before it"},
       {"hole between", with(v_and_w("[0,4]", "[5,9]"), zeros(9)), "[5, 9] leave a hole"},
       {"overlap", with(v_and_w("[0,4]", "[3,7]"), zeros(7)),
        "tensor \"w\": data_offsets [3, 7] ov"},
       {"the same data twice", with(v_and_w("[0,4]", "[0,4]"), zeros(4)), "[0, 4] overlap"},
       {"empty tensor inside another",
        with("{\"v\":" + tensor("U8", "[4]", "[0,4]") + ",\"w\":" + tensor("U8", "[0]", "[2,2]") +
                 "}",
             zeros(4)),
        "tensor \"w\": data_offsets [2, 2] overlap"},
       {"bytes behind the last tensor", with(v_and_w("[4,8]", "[0,4]"), zeros(11)),
        "last tensor \"v\": 3 trailing bytes after data byte 8"},
       {"20 GB behind the last tensor", with(v_and_w("[0,4]", "[4,8]"), zeros(8)),
        "last tensor \"w\": 20000000000 trailing bytes", 20'000'000'000},
       {"bytes behind no tensor", with("{}", "x"), "no tensors: 1 trailing bytes"}});
}

}  // namespace

std::vector<BadFile> bad_files() {
  List list;
  add_beginnings(list);
  add_syntax(list);
  add_fields(list);
  add_names(list);
  add_layouts(list);
  return list;
}
