// Chat templates: texts as of transformers (tests/data/chat_template_cases.json), folders, what is
// not supported, and templates that cost too much.

#include <fastweights/models/chat_template.hpp>
#include <fstream>

#include "data_folder.hpp"
#include "models_io/folder_files.hpp"
#include "support/error_of.hpp"

namespace {

using folder_files::check_error;
using folder_files::Folder;
using folder_files::write_text;
using fw::models::ChatOptions;
using fw::models::ChatTemplate;
using fw::models::OrderedJson;

const OrderedJson hello = {{{"role", "user"}, {"content", "Hello"}}};

std::string rendered(const std::string& text,
                     const OrderedJson& variables = OrderedJson::object()) {
  return ChatTemplate::parse(text).render(hello, {.variables = variables});
}
std::string refused(const std::string& text, const OrderedJson& variables = OrderedJson::object()) {
  return error_of<std::invalid_argument>([&] { rendered(text, variables); });
}

TEST_CASE("templates give the texts of transformers", "[models_io]") {
  const std::filesystem::path data = FASTWEIGHTS_REFERENCE_DIR;
  const auto all = OrderedJson::parse(std::ifstream(data / "chat_template_cases.json"));
  REQUIRE(all["cases"].size() > 40);
  for (const OrderedJson& each : all["cases"]) {
    INFO(each["name"]);
    const auto chat = ChatTemplate::parse(each["template"], {{"bos_token", "<s>"}});
    CHECK(chat.render(all["messages"],
                      {.add_generation_prompt = true, .variables = all["variables"]}) ==
          each["text"].get<std::string>());
  }
}

TEST_CASE("ends of lines and a last line end are as in jinja2", "[models_io]") {
  CHECK(rendered("a\r\nb\rc\n") == "a\nb\nc");
  CHECK(rendered("a\n\n") == "a\n");
  CHECK(rendered("{% if true %}\r\n a\r\n{% endif %}\r\n") == " a\n");
}

TEST_CASE("a chat template is read from a folder", "[models_io]") {
  const Folder folder;
  const auto read = [&] { return ChatTemplate::read(folder.path()); };
  const auto config = [&](const OrderedJson& json) {
    write_text(folder / "tokenizer_config.json", json.dump());
  };
  check_error<std::invalid_argument>(read, {"tokenizer_config.json: cannot be read"});
  config({{"chat_template", "{{ bos_token }}{{ eos_token }}{{ messages[0].content }}"},
          {"bos_token", "<s>"},
          {"eos_token", {{"content", "</s>"}, {"lstrip", false}}},
          {"pad_token", nullptr},
          {"add_bos_token", true}});
  CHECK(read().render(hello) == "<s></s>Hello");
  const OrderedJson one = {{"name", "default"}, {"template", "plain"}};
  const OrderedJson two = {{"name", "tool_use"}, {"template", "{{ tools[0].name }}"}};
  config({{"chat_template", {one, two}}});
  CHECK(read().render(hello) == "plain");
  CHECK(read().render(hello, {.tools = {{{"name", "add"}}}}) == "add");
  config({{"chat_template", {two}}});
  check_error<std::invalid_argument>(read, {"chat_template: expected a text, or a list"});
  write_text(folder / "chat_template.jinja", "file{{ bos_token is defined }}\n");
  CHECK(read().render(hello) == "fileFalse");
  write_text(folder / "chat_template.jinja", "{% if %}");
  check_error<std::invalid_argument>(read, {"chat_template.jinja: line 1: expected an expression"});
}

TEST_CASE("messages are as transformers takes them", "[models_io]") {
  const auto chat = ChatTemplate::parse("{{ messages | tojson }}");
  CHECK(chat.render({{{"role", "a"}, {"content", nullptr}, {"reasoning", "r"}}}) ==
        R"([{"thinking": "r", "role": "a", "reasoning": "r", "reasoning_content": "r"}])");
  check_error<std::invalid_argument>([&] { chat.render(OrderedJson::array()); },
                                     {"expected a list of messages"});
  check_error<std::invalid_argument>([&] { chat.render({1}); }, {"a message is no object"});
  check_error<std::invalid_argument>(
      [&] {
        chat.render(hello, {.variables = {{"big", std::uint64_t(1) << 63}}});
      },
      {"9223372036854775808, which is beyond 64 bits"});
  const std::string odd = ChatTemplate::parse("{{ messages[0].content }}")
                              .render({{{"role", "user"}, {"content", "a\xff"}}});
  CHECK(odd == "a\uFFFD");
}

TEST_CASE("a template says no, with its line", "[models_io]") {
  CHECK(refused("\n{{ raise_exception('no ' ~ 1) }}") ==
        "chat_template.jinja: line 2: the template says: no 1");
}

TEST_CASE("what is not supported is named, with its line", "[models_io]") {
  const std::pair<const char*, const char*> all[] = {
      {"\n\n{% include 'a' %}", "line 3: the statement include is not supported"},
      {"{% raw %}{% endraw %}", "the statement raw is not supported"},
      {"{{ 2 ** 3 }}", "the operator ** is not supported"},
      {"{% for a in b recursive %}{% endfor %}", "a recursive loop is not supported"},
      {"{{ 1 | wordcount }}", "the filter wordcount is not supported"},
      {"{{ 1 is escaped }}", "the test escaped of an int is not supported"},
      {"{{ 'a'.zfill(3) }}", "the method zfill of a str is not supported"},
      {"{{ cycler(1) }}", "the function or variable cycler is not supported"},
      {"{{ 'a' | trim(x=1) }}", "the filter trim: the argument x is not supported"},
      {"{{ '%o' % 1 }}", "the format %o is not supported"},
      {"{{ '\\N{DOT}' }}", "the escape \\N is not supported"},
      {"{{ 'a' | int(0, 16) }}", "another base than 10 is not supported"},
      {"{{ [1] | map }}", "the name of an inner one is missing"},
  };
  for (const auto& [text, error] : all)
    CHECK_THAT(refused(text), folder_files::ContainsSubstring(error));
}

TEST_CASE("mistakes are named", "[models_io]") {
  const std::pair<const char*, const char*> all[] = {
      {"{{ a.b }}", "'a', which is undefined, has no attribute b"},
      {"{{ a['b'] }}", "'a', which is undefined, has no entries"},
      {"{{ 'a' + 1 }}", "the operator + does not take a str and an int"},
      {"{{ none < 1 }}", "the operator < does not take None and an int"},
      {"{{ 1 / 0 }}", "a division by zero"},
      {"{{ 9223372036854775807 + 1 }}", "beyond 64 bits"},
      {"{{ 9223372036854775808 }}", "expected a number of 64 bits"},
      {"{{ a() }}", "'a', which is undefined cannot be called"},
      {"{{ [1].append(2) }}", "'append', which is undefined cannot be called"},
      {"{% set a.b = 1 %}", "expected a namespace"},
      {"{% set n = namespace() %}{% set n._a = 1 %}", "takes no name with _ first"},
      {"{% set loop = 1 %}", "expected a name other than loop"},
      {"{% for a, b in [[1]] %}{% endfor %}", "there are 1 values for 2 names"},
      {"{% for a in 1 %}{% endfor %}", "an int has no entries"},
      {"{% if true %}", "expected endif"},
      {"{% endif %}", "the statement endif is not supported"},
      {"{{ 1 ", "a tag has no end, expected }}"},
      {"{{ 'a }}", "a text has no end"},
      {"{# a", "a comment has no end"},
      {"{{ (1] }}", "the bracket ] has no beginning"},
      {"{{ 1 2 }}", "expected the end of the tag, is 2"},
      {"{{ $ }}", "the character $ is not expected"},
      {"{% break %}", "expected it inside of a loop"},
      {"{% macro f() %}{% endmacro %}{{ f(1) }}",
       "the macro f has 1 arguments, expected at most 0"},
      {"{{ f }}{% set f = namespace() %}{{ f }}", "printing an object is not supported"},
      {"{{ [1] | map('upper') }}", "printing a generator is not supported"},
      {"{{ missing | tojson }}", "tojson of 'missing', which is undefined is not possible"},
  };
  for (const auto& [text, error] : all)
    CHECK_THAT(refused(text), folder_files::ContainsSubstring(error));
}

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST_CASE("a hostile template is bounded", "[models_io]") {
  const std::string loop = "{% for i in range(100000) %}", end = "{% endfor %}";
  const std::string huge = "{% set a = 'x' * 1000000 %}";
  const std::pair<std::string, const char*> all[] = {
      {std::string((1 << 20) + 1, 'a'), "the template has more than 1048576 bytes"},
      {"{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}",
       "more than 128 levels of blocks and expressions"},
      {"{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}", "more than 128 levels"},
      {"{{ " + repeated("-", 5000) + "1 }}", "more than 128 levels"},
      {"{{ " + repeated("not ", 5000) + "1 }}", "more than 128 levels"},
      {"{{ 1" + repeated(" + 1", 5000) + " }}", "more than 128 levels"},
      {"{{ a" + repeated(".a", 5000) + " }}", "more than 128 levels"},
      {"{{ a" + repeated(" | trim", 5000) + " }}", "more than 128 levels"},
      {"{{ 1" + repeated(" if 1", 5000) + " }}", "more than 128 levels"},
      {repeated("{% if 1 %}", 5000), "more than 128 levels"},
      {"{% set " + repeated("(", 5000) + repeated(")", 5000) + " %}", "more than 128 levels"},
      {"{% set n = namespace(a=1) %}" + loop + "{% set n.a = [n.a] %}" + end,
       "a value has more than 64 levels"},
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "more than 512 levels are active"},
      {"{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}",
       "512 levels are active"},
      {loop + loop + "{{ i }}" + end + end, "the template makes more than"},
      {"{% set n = namespace(a='x') %}" + loop + "{% set n.a = n.a + n.a %}" + end,
       "a text has more than 16777216 bytes"},
      {"{% set n = namespace(a=[1]) %}" + loop + "{% set n.a = n.a + n.a %}" + end,
       "makes more than 268435456 bytes"},
      {"{{ 'a' * 1000000000000 }}", "makes more than 268435456 bytes"},
      {"{{ [1] * 1000000000000 }}", "makes more than 268435456 bytes"},
      {huge + "{{ [a * 17] }}", "a text has more than 16777216 bytes"},
      {huge + "{{ range(1000) | list | tojson(separators=(a, a)) }}", "the template makes more"},
      {huge + "{{ (a * 16).split('x') }}", "the template makes more than"},
      {huge + "{{ (a * 16).rsplit('x', 99999999) }}", "the template makes more than"},
      {"{{ [1] | batch(9223372036854775807, 1) | list }}", "more than 16777216 steps"},
      {"{% for i in [1] %}{% generation %}{% break %}", "expected it inside of a loop"},
      {"{{ '%99999999d' % 1 }}", "is not supported"},
      {"{{ 'a' | indent(1000000000000) }}", "makes more than"},
      {"{{ [[1]] | tojson(indent=1000000000) }}", "expected at most 1024"},
      {"{{ range(100001) }}", "range has more than 100000 numbers"},
      {huge + loop + "{{ a }}" + end, "more than 67108864 bytes"},
      {huge + loop + "{% set b = a | upper %}" + end, "the template makes more than"},
      {huge + loop + "{% set b = a.split('x') %}" + end, "the template makes more than"},
      {huge + loop + "{% set b = 'y' in a %}" + end, "more than 16777216 steps"},
      {huge + loop + "{% set b = a == a ~ '' %}" + end, "the template makes more than"},
      {huge + "{% set b = ('x' * 300000) ~ 'y' %}" + loop + "{% set c = a.rfind(b) %}" + end,
       "more than 16777216 steps"},
      {"{% set d = dict(range(9000) | batch(1) | map('first') | map('batch', 1)) %}", "an int"},
  };
  for (const auto& [text, error] : all) {
    INFO(text.substr(0, 100));
    CHECK_THAT(refused(text), folder_files::ContainsSubstring(error));
  }
  OrderedJson deep = 1;
  for (int i = 0; i < 70; ++i) deep = OrderedJson::array({deep});
  CHECK_THAT(refused("a", {{"deep", deep}}),
             folder_files::ContainsSubstring("a variable has more than 64 levels"));
}

TEST_CASE("a loop is left from inside of with", "[models_io]") {
  CHECK(rendered(
            "{% for i in [1, 2] %}{% with a = i %}{{ a }}{% break %}{% endwith %}{% endfor %}") ==
        "1");
}

TEST_CASE("namespaces that hold each other are freed", "[models_io]") {
  CHECK(rendered("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = [b] %}"
                 "{{ a.b[0].a.b | length }}") == "1");
}

TEST_CASE("strftime_now takes a time", "[models_io]") {
  const auto chat = ChatTemplate::parse("{{ strftime_now('%Y-%m') }}");
  CHECK(chat.render(hello, {.now = 1700000000}) == "2023-11");
  CHECK(rendered("{{ strftime_now('') }}").empty());
}

}  // namespace
