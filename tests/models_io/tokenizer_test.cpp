// Tokenizers: ids and texts as of the Python package tokenizers (tests/data/tokenizer_cases.json
// and the folder of a model), hostile texts and hostile files.

#include <fastweights/io/safetensors.hpp>
#include <fastweights/models/tokenizer.hpp>
#include <fastweights/models/tokenizer/byte_level.hpp>
#include <fstream>

#include "data_folder.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"

namespace {

using fw::models::StreamDecoder;
using fw::models::Tokenizer;
using nlohmann::json;
using Ids = std::vector<int>;

const std::filesystem::path data = FASTWEIGHTS_REFERENCE_DIR;
const std::filesystem::path folder = data / "models/qwen3_5_folder";

const json& cases() {
  static const json all = json::parse(std::ifstream(data / "tokenizer_cases.json"));
  return all;
}

// A byte-level tokenizer of the 256 bytes, whose ids are the bytes, and "ab", 256.
json small() {
  json vocabulary;
  for (int b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    vocabulary[fw::models::letters_of({&byte, 1})] = b;
  }
  vocabulary["ab"] = 256;
  return {{"version", "1.0"},
          {"added_tokens", json::array({{{"id", 257}, {"content", "<s>"}, {"special", true}}})},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {"a b"}}}}};
}

json split(const std::string& expression, const std::string& behaviour = "Isolated",
           bool invert = false) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", expression}}},
          {"behavior", behaviour},
          {"invert", invert}};
}
json with_expression(const std::string& expression) {
  json all = small();
  all["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {split(expression),
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  return all;
}

Tokenizer tokenizer_of(const json& file) { return Tokenizer::parse(file.dump(), "t.json"); }

std::string error_in(const std::string& text) {
  return error_of([&] { Tokenizer::parse(text, "t.json"); });
}
// The error of the small tokenizer with a value in another place.
std::string error_with(const std::string& pointer, const json& value) {
  json file = small();
  file[json::json_pointer(pointer)] = value;
  return error_in(file.dump());
}

std::string streamed(const Tokenizer& tokenizer, const Ids& ids, bool skips_special) {
  StreamDecoder decoder(tokenizer, skips_special);
  std::string text;
  for (const int id : ids) {
    const std::string part = decoder.add(id);
    CHECK(fw::models::valid_utf8(part) == part);
    text += part;
  }
  return text + decoder.finish();
}

void check_encoded(const Tokenizer& tokenizer, const json& encoded) {
  for (const json& each : encoded) {
    INFO(each.dump());
    CHECK(tokenizer.encode(each[0].get<std::string>(), each[1].get<bool>()) == each[2].get<Ids>());
  }
}

}  // namespace

TEST_CASE("tokenizer: ids and texts are those of the package tokenizers", "[tokenizer]") {
  for (const json& each : cases()["tokenizers"]) {
    INFO(each["name"].get<std::string>());
    const Tokenizer tokenizer = tokenizer_of(each["json"]);
    check_encoded(tokenizer, each["encoded"]);
    for (const json& decoded : each["decoded"]) {
      const Ids ids = decoded[0].get<Ids>();
      const bool skips = decoded[1].get<bool>();
      INFO(decoded.dump());
      CHECK(tokenizer.decode(ids, skips) == decoded[2].get<std::string>());
      CHECK(streamed(tokenizer, ids, skips) == decoded[2].get<std::string>());
    }
  }
}

TEST_CASE("tokenizer: the folder of a model", "[tokenizer]") {
  const Tokenizer tokenizer = Tokenizer::read(folder / "tokenizer.json");
  CHECK(tokenizer.size() == 600);
  check_encoded(tokenizer, cases()["folder"]);
  const auto expected = fw::io::SafeTensors::read(folder / "expected.safetensors");
  const auto ids_of = [&](const std::string& name) {
    const auto values = expected.values<std::int64_t>(name);
    return Ids(values.begin(), values.end());
  };
  for (const std::string i : {"0", "1", "2"}) {
    const std::string prompt = expected.metadata().at("prompt." + i);
    CHECK(tokenizer.encode(prompt) == ids_of("ids." + i));
    CHECK(tokenizer.decode(ids_of("ids." + i)) == prompt);
    CHECK(tokenizer.decode(ids_of("greedy." + i)) == expected.metadata().at("continuation." + i));
    CHECK(streamed(tokenizer, ids_of("greedy." + i), true) ==
          expected.metadata().at("continuation." + i));
  }
}

TEST_CASE("tokenizer: the expressions of Split", "[tokenizer]") {
  for (const json& each : cases()["splits"]) {
    INFO(each.dump());
    const auto step = fw::models::SplitStep::read(split(each[0], each[1], each[2]), "split");
    const std::string text = each[3];
    std::vector<std::string_view> words = {text};
    fw::models::PatternSteps steps(text.size());
    step.apply(words, steps);
    CHECK(std::vector<std::string>(words.begin(), words.end()) ==
          each[4].get<std::vector<std::string>>());
  }
}

TEST_CASE("tokenizer: newer marks do not move in the normal form", "[tokenizer]") {
  CHECK(cases()["normal_forms"].size() == 44);
  for (const json& each : cases()["normal_forms"]) {
    INFO(each.dump(-1, ' ', true));
    CHECK(fw::models::nfc(each[0].get<std::string>()) == each[1].get<std::string>());
  }
}

TEST_CASE("tokenizer: a text without special characters divides words too", "[tokenizer]") {
  json step = split("");
  step["pattern"] = {{"String", "a.b"}};
  std::vector<std::string_view> words = {"xa.bacbya.b"};
  fw::models::PatternSteps steps(words[0].size());
  fw::models::SplitStep::read(step, "split").apply(words, steps);
  CHECK(words == std::vector<std::string_view>{"x", "a.b", "acby", "a.b"});
}

TEST_CASE("tokenizer: both forms of merges, and names of tokens", "[tokenizer]") {
  json file = small();
  for (const json& merge : {json("a b"), json({"a", "b"})}) {
    file["model"]["merges"] = json::array({merge});
    const Tokenizer tokenizer = tokenizer_of(file);
    CHECK(tokenizer.encode("abab c<s>a") == Ids{256, 256, 32, 99, 257, 97});
    CHECK(tokenizer.id_of("ab") == 256);
    CHECK(tokenizer.id_of("<s>") == 257);
    CHECK(tokenizer.id_of("Ġ") == 32);
    CHECK_FALSE(tokenizer.id_of("abc").has_value());
    CHECK(tokenizer.size() == 258);
    CHECK(tokenizer.is_special(257));
    CHECK_FALSE(tokenizer.is_special(256));
  }
}

TEST_CASE("tokenizer: the pair of the least rank is merged first", "[tokenizer]") {
  json file = small();
  file["added_tokens"] = json::array();
  file["model"]["vocab"].update({{"bc", 257}, {"abc", 258}, {"aa", 259}, {"aaaa", 260}});
  file["model"]["merges"] = {"b c", "a b", "a bc", "a a", "aa aa"};
  const Tokenizer tokenizer = tokenizer_of(file);
  CHECK(tokenizer.encode("abc") == Ids{258});
  CHECK(tokenizer.encode("abbc") == Ids{256, 257});
  CHECK(tokenizer.encode("aaaaaaa") == Ids{260, 259, 97});
}

TEST_CASE("tokenizer: bytes that are not UTF-8", "[tokenizer]") {
  const Tokenizer tokenizer = tokenizer_of(small());
  // The results of Python's bytes.decode("utf-8", "replace").
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"a\xff", "a\uFFFD"},
      {"\xc3", "\uFFFD"},
      {"\xe2\x82", "\uFFFD"},
      {"\xe2\x82x", "\uFFFDx"},
      {"\xf0\x9f\x98\xf0\x9f\x98\x80", "\uFFFD\U0001F600"},
      {"\xc0\x80", "\uFFFD\uFFFD"},
      {"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\xe0\x9f\xbf", "\uFFFD\uFFFD\uFFFD"}};
  for (const auto& [given, expected] : texts) {
    CHECK(tokenizer.encode(given) == tokenizer.encode(expected));
    Ids bytes;
    for (const char c : given) bytes.push_back(static_cast<unsigned char>(c));
    CHECK(tokenizer.decode(bytes) == expected);
    CHECK(streamed(tokenizer, bytes, true) == expected);
  }
  CHECK(tokenizer.encode("").empty());
  CHECK(tokenizer.encode(std::string_view("\0a", 2)) == Ids{0, 97});
}

TEST_CASE("tokenizer: a character comes with its last byte", "[tokenizer]") {
  const Tokenizer tokenizer = tokenizer_of(small());
  StreamDecoder decoder(tokenizer);
  CHECK(decoder.add(0xE2).empty());
  CHECK(decoder.add(0x82).empty());
  CHECK(decoder.add(257).empty());  // a special token
  CHECK(decoder.add(0xAC) == "€");
  CHECK(decoder.add(0xC3).empty());
  CHECK(decoder.add('x') == "\uFFFDx");
  CHECK(decoder.add(0xF0).empty());
  CHECK(decoder.finish() == "\uFFFD");
  CHECK(decoder.finish().empty());
  CHECK(decoder.add('y') == "y");
}

TEST_CASE("tokenizer: ids without a token add nothing", "[tokenizer]") {
  const Tokenizer tokenizer = tokenizer_of(small());
  CHECK(tokenizer.decode(Ids{97, -1, 258, 2147483647, -2147483647, 98}) == "ab");
  CHECK(tokenizer.decode(Ids{97, 257, 98}) == "ab");
  CHECK(tokenizer.decode(Ids{97, 257, 98}, false) == "a<s>b");
}

TEST_CASE("tokenizer: long words take O(n log n)", "[tokenizer]") {
  json file = small();
  file["added_tokens"] = json::array();
  std::string token = "a";
  for (int i = 0; i < 10; ++i) {
    file["model"]["merges"].push_back({token, token});
    token += token;
    file["model"]["vocab"][token] = 257 + i;
  }
  file["normalizer"] = {{"type", "NFC"}};
  const Tokenizer tokenizer = tokenizer_of(file);
  CHECK(tokenizer.encode(std::string(1 << 20, 'a')) == Ids(1024, 266));
  std::string accents = "a";  // out of order
  for (int i = 0; i < 200000; ++i) accents += "\u0301\u0323";
  const Ids ids = tokenizer.encode(accents);
  CHECK(ids.size() == 800001);
  CHECK(tokenizer.decode(std::span(ids).first(7)) == "\u1EA1\u0323\u0323");
}

TEST_CASE("tokenizer: backtracking is limited", "[tokenizer]") {
  const std::string letters(100000, 'a'), spaces(100000, ' ');
  for (const char* expression : {"(a+)+b", "\\s+$", "(?:\\s|\\n)*x"}) {
    const Tokenizer tokenizer = tokenizer_of(with_expression(expression));
    for (const std::string& text : {letters + "c", spaces + "c"}) {
      const std::string error = error_of([&] { tokenizer.encode(text); });
      CHECK((error == "no error" || error.starts_with("t.json: pre_tokenizer: pretokenizers 0")));
    }
  }
  // The usual expressions need none of it, whatever the text.
  const Tokenizer usual = Tokenizer::read(folder / "tokenizer.json");
  CHECK(usual.encode(spaces + "c" + letters).size() > 100000);
}

TEST_CASE("tokenizer: the steps of usual expressions grow with the text", "[tokenizer]") {
  const std::string llama_3 =
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?"
      "[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  const std::string lower = "[\\p{Ll}\\p{Lo}\\p{M}&&[^\\p{Han}]]";
  for (const std::string& expression : {llama_3, "\\p{Han}+|" + lower + "+|[^\\p{L}]+"})
    for (const std::string piece : {"a", " ", "\n", "7", ".", "漢", "word and, ", "  \n\n\t "}) {
      INFO(expression << " and many \"" << piece << '"');
      const fw::models::SplitPattern pattern(expression, "pattern");
      for (const std::size_t n : {1000, 4000, 16000, 64000}) {
        std::string text;
        while (text.size() < n) text += piece;
        fw::models::PatternSteps steps(text.size());
        pattern.parts(text, steps);
        CHECK(steps.taken() >= text.size() / 4);
        CHECK(steps.taken() <= 48 * text.size());
      }
    }
}

TEST_CASE("tokenizer: a text that takes more steps is refused", "[tokenizer]") {
  std::string many = "a";
  for (int i = 0; i < 400; ++i) many += "\\x{1000}-\\x{1001}";
  for (const std::string& expression :
       {std::string("a*+b"), std::string("a*b"), std::string("[^b]*+c"), std::string("(?>a*)b"),
        std::string("a*(?=a*+b)"), std::string("(?:(?=a*+b)a|a)*+c"), std::string("(?!a*+b)a*+c"),
        std::string("(?:a{60000}b|a{60000}[cd])"), std::string("(?<=a{60000})[a-c]"),
        std::string(8000, 'a') + "b", "[" + many + "]{9}c"}) {
    INFO(expression.substr(0, 60));
    const fw::models::SplitPattern pattern(expression, "pattern");
    for (const std::size_t n : {1000, 4000, 16000, 64000}) {
      const std::string text = std::string(n, 'a') + "e" + std::string(n / 100, 'b') + "e";
      fw::models::PatternSteps steps(text.size());
      CHECK(steps.most() == (1u << 25) + 256 * text.size());
      const std::string error = error_of([&] { pattern.parts(text, steps); });
      CHECK((error == "no error" ||
             error == "pattern: takes more than 2^25 steps and 256 a byte of the text"));
      CHECK(steps.taken() <= steps.most());
      if (n == 64000) CHECK(error != "no error");
    }
  }
}

TEST_CASE("tokenizer: all words of a text share its steps", "[tokenizer]") {
  json file = with_expression("c");
  auto& steps = file["pre_tokenizer"]["pretokenizers"];
  steps.insert(steps.begin() + 1, split("a*+[xb]"));
  const Tokenizer tokenizer = tokenizer_of(file);
  const std::string word = std::string(3000, 'a') + "c";
  std::string text;
  for (int i = 0; i < 20; ++i) text += word;
  CHECK(tokenizer.encode(word).size() == 3001);
  CHECK(error_of([&] {
          tokenizer.encode(text);
        }).starts_with("t.json: pre_tokenizer: pretokenizers 1: pattern: takes more than"));
}

TEST_CASE("tokenizer: spaces beside added tokens are looked at once", "[tokenizer]") {
  using fw::models::AddedTokens;
  for (const std::size_t n : {1000, 4000, 16000, 64000})
    for (const int sides : {1, 2, 3})
      for (const std::string piece : {" ", "x", "x ", " x  ", "  x"}) {
        INFO(n << " " << sides << " \"" << piece << '"');
        const AddedTokens tokens(
            {{" ", 1, false, (sides & 1) != 0, (sides & 2) != 0}, {"x", 2, false, true, true}});
        std::string text, parts;
        while (text.size() < n) text += piece;
        std::size_t found = 0;
        const std::size_t spaces = tokens.split(
            text, [&](std::string_view part) { parts += part; }, [&](int) { ++found; });
        CHECK(spaces <= 2 * text.size());
        CHECK(found == text.size());
        CHECK(parts.empty());
      }
}

TEST_CASE("tokenizer: pairs of a long word", "[tokenizer]") {
  json model = small()["model"];
  std::string token = "a";
  for (int i = 0; i < 10; ++i) {
    model["merges"].push_back({token, i % 2 == 0 ? token : "a"});
    token += i % 2 == 0 ? token : "a";
    model["vocab"][token] = 257 + i;
  }
  const fw::models::BytePairs pairs(model, "model");
  for (const std::size_t n : {1000, 10000, 100000, 1000000})
    for (const std::string piece : {"a", "ab", "aab", "aaaaaaab"}) {
      std::string word;
      while (word.size() < n) word += piece;
      fw::models::BytePairs::Scratch scratch;
      Ids ids;
      pairs.encode(word, ids, scratch);
      CHECK(scratch.pairs >= word.size() - 1);
      CHECK(scratch.pairs < 3 * word.size());
    }
}

TEST_CASE("tokenizer: a template adds at most 1024 tokens", "[tokenizer]") {
  const auto with_pieces = [](std::size_t pieces, std::size_t ids) {
    json file = small(), single = json::array();
    for (std::size_t i = 0; i < pieces; ++i) {
      if (i == pieces / 2) single.push_back(json::parse(R"({"Sequence": {"id": "A"}})"));
      single.push_back(json::parse(R"({"SpecialToken": {"id": "<s>"}})"));
    }
    const json special = {{"ids", std::vector<int>(ids, 257)}};
    file["post_processor"] = {
        {"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", {{"<s>", special}}}};
    return file;
  };
  for (const std::size_t n : {4, 8, 16, 32})
    CHECK(tokenizer_of(with_pieces(n, n)).encode("a").size() == n * n + 1);
  CHECK(tokenizer_of(with_pieces(20000, 0)).encode("a").size() == 1);
  for (const std::size_t n : {33, 300, 1024, 3000})
    CHECK_THAT(error_in(with_pieces(n, n).dump()),
               Catch::Matchers::ContainsSubstring(": expected at most 1024"));
  json file = with_pieces(32, 32);  // 1024 tokens, and one of another template
  file["post_processor"] = {
      {"type", "Sequence"},
      {"processors", {file["post_processor"], with_pieces(1, 1)["post_processor"]}}};
  CHECK_THAT(error_in(file.dump()),
             Catch::Matchers::ContainsSubstring("single: expected at most 1024 tokens"));
}

TEST_CASE("tokenizer: expressions that are wrong or not supported", "[tokenizer]") {
  for (const char* expression :
       {"(",           "[a",     "a{2}+",       "a{2}?", "(?m:.)",      "(?<name>a)",
        "(*UTF)",      "a(?i)b", "\\bword",     "\\1",   "[[:alpha:]]", "[a&&]",
        "\\p{NoSuch}", "\\",     "\\x{110000}", "\\u12", "\\C",         "[\\A]",
        "(?R)",        "\\p{L",  "a**",         "[z-a]"}) {
    INFO(expression);
    CHECK_THAT(
        error_in(with_expression(expression).dump()),
        Catch::Matchers::ContainsSubstring("t.json: pre_tokenizer: pretokenizers 0: pattern"));
  }
  const auto many = [](const std::string& text) {
    std::string all;
    for (int i = 0; i < 70000; ++i) all += text;
    return error_in(with_expression(all).dump());
  };
  for (const char* text : {"[", "(", "a", "(?:a|b)*"}) CHECK(many(text) != "no error");
}

TEST_CASE("tokenizer: options that are not supported are refused", "[tokenizer]") {
  const std::vector<std::tuple<std::string, json, std::string>> options = {
      {"/normalizer", {{"type", "NFKC"}}, "normalizer: type"},
      {"/normalizer", {{"type", "Sequence"}}, "normalizer: normalizers"},
      {"/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}}, "type"},
      {"/pre_tokenizer", nullptr, "pre_tokenizer: is missing"},
      {"/pre_tokenizer", {{"type", "Whitespace"}}, "pre_tokenizer: type"},
      {"/pre_tokenizer", split("a"), "expected ByteLevel as the last step"},
      {"/pre_tokenizer/add_prefix_space", 1, "add_prefix_space"},
      {"/decoder", nullptr, "decoder: is missing"},
      {"/decoder/type", "WordPiece", "decoder: type"},
      {"/post_processor", {{"type", "RobertaProcessing"}}, "post_processor: type"},
      {"/model/type", "Unigram", "model: type"},
      {"/model/dropout", 0.1, "model: dropout"},
      {"/model/byte_fallback", true, "model: byte_fallback"},
      {"/model/continuing_subword_prefix", "##", "continuing_subword_prefix"},
      {"/model/end_of_word_suffix", "</w>", "end_of_word_suffix"},
      {"/version", "2.0", "version"}};
  for (const auto& [pointer, value, message] : options) {
    INFO(pointer << " " << value.dump());
    const std::string error = error_with(pointer, value);
    CHECK(error.starts_with("t.json: "));
    CHECK_THAT(error, Catch::Matchers::ContainsSubstring(message));
  }
  CHECK(error_with("/model/dropout", nullptr) == "no error");
  CHECK(error_with("/model/unk_token", "<unk>") == "no error");  // no byte is unknown
  CHECK(error_with("/model/continuing_subword_prefix", "") == "no error");
  CHECK(error_with("/truncation", {{"max_length", 3}}) == "no error");
}

TEST_CASE("tokenizer: a byte without a token", "[tokenizer]") {
  json file = small();
  file["model"]["vocab"].erase("c");
  const Tokenizer tokenizer = tokenizer_of(file);
  CHECK(tokenizer.encode("ab") == Ids{256});
  CHECK(error_of([&] { tokenizer.encode("abc"); }) ==
        "t.json: model: vocab: the byte 99 of the text has no token");
  file["model"]["unk_token"] = "a";
  CHECK_THAT(error_in(file.dump()), Catch::Matchers::ContainsSubstring("model: unk_token"));
}

TEST_CASE("tokenizer: every place of the file may have a wrong value", "[tokenizer]") {
  json file = small();
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}};
  file["pre_tokenizer"] = with_expression("a")["pre_tokenizer"];
  file["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single",
                             {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
                              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
                            {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {257}}}}}}};
  json vocabulary = {{"a", 97}, {"b", 98}, {"ab", 256}};  // so that the test is short
  file["model"]["vocab"] = vocabulary;
  CHECK(tokenizer_of(file).encode("ab") == Ids{257, 97, 98});
  const std::vector<json> values = {nullptr,
                                    true,
                                    -1,
                                    1.5,
                                    1e300,
                                    18446744073709551615u,
                                    2147483648u,
                                    4194304,
                                    256,
                                    "",
                                    "a",
                                    json::array(),
                                    {1},
                                    {{1}},
                                    {"a", "b"},
                                    json::object(),
                                    {{"type", "a"}}};
  const json flat = file.flatten();
  for (const auto& [place, old] : flat.items()) {
    for (json::json_pointer at(place); !at.empty(); at = at.parent_pointer())
      for (const json& value : values) {
        json changed = file;
        changed[at] = value;
        INFO(at.to_string() << " " << value.dump());
        const std::string error = error_in(changed.dump());
        CHECK((error == "no error" || error.starts_with("t.json: ")));
      }
  }
}

TEST_CASE("tokenizer: files that contradict themselves", "[tokenizer]") {
  const auto has = [](const std::string& error, const std::string& part) {
    CHECK(error.starts_with("t.json: "));
    CHECK_THAT(error, Catch::Matchers::ContainsSubstring(part));
  };
  has(error_with("/model/vocab/x", 97), "model: vocab: tokens \"a\" and \"x\" have the id 97");
  has(error_with("/model/vocab/ab", -1), "token \"ab\": expected an id of 0 to 4194303, is -1");
  has(error_with("/model/vocab/ab", 1u << 31), "token \"ab\": expected an id");
  has(error_with("/model/vocab/ab", 1.0), "token \"ab\": expected an id");
  has(error_with("/model/merges", {"a b", "a b"}), "model: merges: entries 0 and 1 are the same");
  has(error_with("/model/merges", {"a c"}), "entry 0: token \"ac\" is not in the vocabulary");
  has(error_with("/model/merges", {"xx b"}), "token \"xx\" is not in the vocabulary");
  has(error_with("/model/merges", {"a b c"}), "expected two tokens and a space");
  has(error_with("/model/merges", {"ab"}), "expected two tokens and a space");
  has(error_with("/model/merges", {{"a", "b", "c"}}), "expected a text or a list of two texts");
  has(error_with("/added_tokens/0/id", 97), "added_tokens 0: id: belongs to another token");
  has(error_with("/added_tokens/0/content", "a"), "the vocabulary has the id 97");
  has(error_with("/added_tokens/0/id", 1 << 22), "added_tokens 0: id");
  has(error_with("/added_tokens/0/content", std::string(2000, 'x')), "at most 1024 bytes");
  has(error_with("/added_tokens/1", {{"id", 258}, {"content", "<s>"}}), "added_tokens 1: content");
  const json pieces = {{{"Sequence", {{"id", "A"}}}}, {{"Sequence", {{"id", "A"}}}}};
  has(error_with("/post_processor", {{"type", "TemplateProcessing"}, {"single", pieces}}),
      "post_processor: single: expected special tokens and one Sequence A");
}

TEST_CASE("tokenizer: texts that are no JSON, too deep, or have a name twice", "[tokenizer]") {
  CHECK(error_in("").starts_with("t.json: is not JSON"));
  CHECK(error_in("{\"a\": \"\xff\"}") == "t.json: is not JSON, byte 8");
  CHECK(error_in("{} {}") == "t.json: is not JSON, byte 4");
  CHECK(error_in("[]") == "t.json: model: is missing");
  CHECK(error_in("{}") == "t.json: model: is missing");
  CHECK(error_in("{\"model\": {\"vocab\": {\"a\": 0, \"a\": 1}}}") ==
        "t.json: the name a is there twice");
  CHECK(error_in("[1e999]").starts_with("t.json: "));
  std::string wide = "[";
  while (wide.size() < 50 << 20) wide += "{},";
  CHECK(error_in(wide) == "t.json: has more than 2^23 values");
  for (const char* level : {"[", "{\"a\":"}) {
    std::string deep;
    while (deep.size() < 50 << 20) deep += level;
    CHECK(error_in(deep) == "t.json: has more than 32 levels");
  }
}

TEST_CASE("tokenizer: files that cannot be read", "[tokenizer]") {
  const TemporaryFolder temporary;
  const auto error = [&](const std::string& name) {
    return error_of([&] { Tokenizer::read(temporary / name); });
  };
  CHECK(error("none.json").starts_with((temporary / "none.json").string() + ": cannot be read"));
  CHECK(error("").find("cannot be read") != std::string::npos);
  std::ofstream(temporary / "large.json").close();
  std::filesystem::resize_file(temporary / "large.json", 100 << 20);
  CHECK(error("large.json").find(": has more than 67108864 bytes") != std::string::npos);
}
