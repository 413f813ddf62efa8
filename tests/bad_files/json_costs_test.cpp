// The cost of JSON while it is read, beside the text itself: see models/strict_json.hpp.

#include <fastweights/models/strict_json.hpp>
#include <functional>

#include "heap.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace {

// A list, or an object, of `count` parts.
std::string text_of(bool is_object, int count, const std::function<std::string(int)>& part) {
  std::string text = is_object ? "{" : "[";
  for (int i = 0; i < count; ++i) text += (i > 0 ? "," : "") + part(i);
  return text + (is_object ? '}' : ']');
}

TEST_CASE("JSON of any form costs memory in proportion to its text", "[bad files]") {
  struct Form {
    const char* name;
    bool is_object;
    std::function<std::string(int)> part;
  };
  const Form forms[] = {
      {"numbers", false, [](int) { return "0"; }},
      {"texts", false, [](int) { return "\"\""; }},
      {"empty lists", false, [](int) { return "[]"; }},
      {"objects", false, [](int) { return R"({"":0})"; }},
      {"lists of a list", false, [](int) { return "[[0]]"; }},
      {"members", true, [](int i) { return '"' + std::to_string(i) + "\":0"; }},
      {"a long text", false, [](int) { return "\"" + std::string(64, 'x') + "\""; }},
  };
  for (const Form& form : forms) {
    std::size_t before = 0;
    // One more than what a list has just grown to.
    for (const int count : {(1 << 14) + 1, (1 << 15) + 1, (1 << 16) + 1, (1 << 17) + 1}) {
      const std::string text = text_of(form.is_object, count, form.part);
      const std::size_t peak = heap::peak_of([&] { fw::models::parse_strictly(text, "file"); });
      INFO(form.name << ", " << text.size() << " bytes: " << peak << " on the heap");
      CHECK(peak > text.size() / 2);
      CHECK(double(peak) <= 32 * double(text.size()));
      if (before > 0) CHECK(double(peak) <= 2.4 * double(before));
      before = peak;
    }
  }
}

TEST_CASE("JSON of more values than any model needs is refused", "[bad files]") {
  const std::string text = text_of(false, (1 << 23) + 1, [](int) { return "0"; });
  const auto read = [&] { fw::models::parse_strictly(text, "file"); };
  CHECK(error_of<std::invalid_argument>(read) == "file: has more than 2^23 values");
  CHECK(heap::peak_of([&] { error_of<std::invalid_argument>(read); }) < 10'000);
}

}  // namespace
