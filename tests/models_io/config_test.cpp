// config.json: entries of the right type, and clear errors for others.

#include <fastweights/models/config.hpp>
#include <fastweights/models/mamba2_mixer.hpp>

#include "models_io/folder_files.hpp"
#include "support/error_of.hpp"

namespace {

using namespace folder_files;
using fw::Index;
using fw::models::Config;

Config config(const std::string& entry) { return Config::parse("{\"a\": " + entry + "}", "file"); }

// The error names the file, the entry and what is there.
template <class F> void refused(const std::string& entry, const F& read) {
  INFO(entry);
  const Config c = config(entry);
  const std::string given = nlohmann::json::parse(entry).dump();
  check_error<std::invalid_argument>([&] { read(c); }, {"file: a: ", ", is " + given});
}

TEST_CASE("entries of a config", "[models_io]") {
  CHECK(config("7").size("a") == 7);
  CHECK(config("2147483648").size("a") == Index(1) << 31);
  CHECK(config("0").count("a") == 0);
  CHECK(config("-1.5").number("a") == -1.5);
  CHECK(config(R"({"__float__": "Infinity"})").limit("a") == HUGE_VAL);
  CHECK(config("true").flag("a"));
  CHECK(config("\"x\"").text("a") == "x");
  CHECK(config("\"x\"").is_text("a", "x"));
  CHECK(config(R"(["x", "y"])").texts("a") == std::vector<std::string>{"x", "y"});
  CHECK(config("[1, 2.5]").numbers("a") == std::vector<double>{1, 2.5});
  CHECK(config(R"([1, 2.5, {"__float__": "Infinity"}])").limits("a") ==
        std::vector<double>{1, 2.5, HUGE_VAL});
  CHECK(config("[0, 3]").sizes("a") == std::vector<Index>{0, 3});
  CHECK(config(R"({"b": 3})").part("a").size("b") == 3);
}

// null is the same as an absent entry, but for is_null.
TEST_CASE("entries that are absent", "[models_io]") {
  for (const char* text : {"{}", R"({"a": null})"}) {
    const Config c = Config::parse(text, "file");
    CHECK(!c.has("a"));
    CHECK(!c.is_list("a"));
    CHECK(c.is_null("a") == (std::string(text) != "{}"));
    CHECK(c.size("a", 5) == 5);
    CHECK(c.count("a") == 0);
    CHECK(c.number("a", 0.5) == 0.5);
    CHECK(c.flag("a", true));
    CHECK(c.text("a", "x") == "x");
    CHECK(!c.part("a").has("b"));
    CHECK_NOTHROW(c.expect("a", {"x"}));
    CHECK_NOTHROW(c.expect_flag("a", true));
    const std::vector<std::string> parts{"file: a: is missing"};
    check_error<std::invalid_argument>([&] { c.size("a"); }, parts);
    check_error<std::invalid_argument>([&] { c.number("a"); }, parts);
    check_error<std::invalid_argument>([&] { c.texts("a"); }, parts);
    check_error<std::invalid_argument>([&] { c.numbers("a"); }, parts);
    check_error<std::invalid_argument>([&] { c.sizes("a"); }, parts);
  }
}

TEST_CASE("sizes that are negative, fractional, absurd or no numbers", "[models_io]") {
  for (const char* entry :
       {"-1", "1.5", "2147483649", "9223372036854775808", "18446744073709551615", "-2147483648",
        "1e30", "8.0", "\"8\"", "[8]", "{}", "true"}) {
    refused(entry, [](const Config& c) { return c.size("a"); });
    refused(entry, [](const Config& c) { return c.size("a", 1); });
    refused(entry, [](const Config& c) { return c.count("a"); });
    const std::string list = std::string("[1, ") + entry + ']';
    refused(list, [](const Config& c) { return c.sizes("a"); });
  }
  refused("0", [](const Config& c) { return c.size("a"); });
}

TEST_CASE("numbers that are infinite or huge are refused", "[models_io]") {
  for (const char* entry : {"1e300", "-1e300", "1e13", R"({"__float__": "Infinity"})"}) {
    refused(entry, [](const Config& c) { return c.number("a"); });
    refused(entry, [](const Config& c) { return c.number("a", 1); });
    const Config list = config(std::string("[1, ") + entry + ']');
    check_error<std::invalid_argument>([&] { list.numbers("a"); }, {"file: a: entry: expected"});
  }
  CHECK(config("-1e12").number("a") == -1e12);
  CHECK_THROWS_WITH(config("1e999"), ContainsSubstring("file: is not JSON"));
}

TEST_CASE("entries of another type", "[models_io]") {
  for (const char* entry : {"\"1\"", "[1]", "{}", "true", R"({"__float__": 5})",
                            R"({"__float__": "Infinity", "b": 1})", R"({"__float__": "x"})"})
    refused(entry, [](const Config& c) { return c.number("a"); });
  for (const char* entry : {"\"true\"", "1", "[true]", "{}"})
    refused(entry, [](const Config& c) { return c.flag("a"); });
  for (const char* entry : {"1", "true", "[\"x\"]", "{}"}) {
    refused(entry, [](const Config& c) { return c.text("a"); });
    refused(entry, [](const Config& c) { c.expect("a", {"x"}); });
  }
  for (const char* entry : {"1", "\"x\"", "{}", "true"}) {
    refused(entry, [](const Config& c) { return c.texts("a"); });
    refused(entry, [](const Config& c) { return c.sizes("a"); });
    refused(entry, [](const Config& c) { return c.numbers("a"); });
  }
  refused("[\"x\", 1]", [](const Config& c) { return c.texts("a"); });
  check_error<std::invalid_argument>([] { config("[1, \"x\"]").numbers("a"); },
                                     {"file: a: ", "\"x\""});
  check_error<std::invalid_argument>([] { config("[1]").part("a"); }, {"file: a"});
}

TEST_CASE("options that are not supported", "[models_io]") {
  CHECK_NOTHROW(config("\"x\"").expect("a", {"y", "x"}));
  refused("\"z\"", [](const Config& c) { c.expect("a", {"y", "x"}); });
  CHECK_THROWS_WITH(config("\"z\"").expect("a", {"y", "x"}),
                    ContainsSubstring("supported is y or x"));
  refused("true", [](const Config& c) { c.expect_flag("a", false); });
}

TEST_CASE("an entry of any length has a short error", "[models_io]") {
  std::string text(100002, 'x');  // no + of strings: g++ 12 may warn of it without a reason
  text.front() = text.back() = '"';
  const Config c = config(text);
  try {
    c.size("a");
  } catch (const std::invalid_argument& error) {
    CHECK(std::string(error.what()).size() < 300);
  }
}

TEST_CASE("texts that are not JSON, or no object", "[models_io]") {
  for (const char* text : {"", "{", "{}x", "[]", "5", "nan", "{\"a\": 1e999}", "{'a': 1}",
                           "{\"a\": \"\xff\"}", "{\"a\": NaN}"})
    check_error<std::invalid_argument>([&] { Config::parse(text, "file"); }, {"file: "});
  std::string nested = "1";
  for (int i = 0; i < 30; ++i) nested = "[" + nested + "]";
  CHECK_NOTHROW(config(nested));
  for (int i = 0; i < 2; ++i) nested = "{\"b\": " + nested + "}";
  CHECK_THROWS_WITH(config("1, \"a\": 2"), ContainsSubstring("the name a is there twice"));
  CHECK_THROWS_WITH(config(nested), ContainsSubstring("file: has more than 32 levels"));
}

TEST_CASE("infinity and NaN as Python writes them are named with their entry", "[models_io]") {
  const auto error_in = [](const std::string& text) {
    return error_of<std::invalid_argument>([&] { Config::parse(text, "file"); });
  };
  CHECK(error_in(R"({"b": 1, "a": Infinity})") ==
        "file: is not JSON, byte 15: a has Infinity, expected a finite number");
  CHECK(error_in(R"({"a": -Infinity})") ==
        "file: is not JSON, byte 8: a has -Infinity, expected a finite number");
  CHECK(error_in(R"({"a": [{"b": 1}, NaN]})") ==
        "file: is not JSON, byte 18: a has NaN, expected a finite number");
  CHECK(error_in(R"({"a": {"b": [NaN]}})") ==
        "file: is not JSON, byte 14: b has NaN, expected a finite number");
  CHECK(error_in("[Infinity]") == "file: is not JSON, byte 2: Infinity, expected a finite number");
  CHECK(error_in(R"({"a": Inf})") == "file: is not JSON, byte 7");
  CHECK(error_in(R"({"a": "NaN", "b": x})") == "file: is not JSON, byte 19");
}

TEST_CASE("a Mamba-2 mixer refuses limits below 0, and sizes whose product overflows",
          "[models_io]") {
  fw::networks::Mamba2Options mixer;
  const auto limits = [&](const char* text) {
    fw::models::set_step_limits(
        mixer, Config::parse(std::string("{\"time_step_limit\": ") + text + "}", "file"));
  };
  CHECK_THROWS_WITH(limits("[-5, -1]"), ContainsSubstring("two numbers of at least 0"));
  CHECK_THROWS_WITH(limits("[2, 1]"), ContainsSubstring("two numbers of at least 0"));
  limits("[0, 0.5]");
  CHECK(mixer.most_step == 0.5);
  fw::networks::Builder<float> net;
  const auto x = net.input(4);
  mixer.groups = mixer.d_k = Index(1) << 31;
  CHECK_THROWS_WITH(fw::networks::mamba2(x, "mixer", mixer),
                    ContainsSubstring("more than 2^29 rows"));
}

}  // namespace
