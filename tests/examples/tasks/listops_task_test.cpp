#include <fstream>
#include <sstream>
#include <tasks/listops_task.hpp>

#include "data_folder.hpp"
#include "support/catch.hpp"

namespace {

struct Value {
  int value = 0;
  long depth = 0;  // of the deepest list
};

// Evaluates one list or digit given as text. Written apart from the generator.
Value evaluate(std::istringstream& in) {
  std::string word;
  REQUIRE(in >> word);
  if (word[0] != '[') return {std::stoi(word), 0};
  std::vector<Value> arguments;
  while ((in >> std::ws).peek() != ']') arguments.push_back(evaluate(in));
  std::string end;
  REQUIRE(in >> end);
  REQUIRE((arguments.size() >= 2 && arguments.size() <= 5));
  Value result = arguments[0];
  for (const Value& a : arguments) {
    if (word == "[MAX") result.value = std::max(result.value, a.value);
    if (word == "[MIN") result.value = std::min(result.value, a.value);
    result.depth = std::max(result.depth, a.depth);
  }
  ++result.depth;
  return result;
}
Value evaluate(const std::string& text) {
  std::istringstream in(text);
  const Value value = evaluate(in);
  CHECK((in >> std::ws).eof());
  return value;
}

}  // namespace

TEST_CASE("The evaluation of the tests", "[listops]") {
  CHECK(evaluate("[MAX 2 9 [MIN 4 7 ] 0 ]").value == 9);
  CHECK(evaluate("[MIN 2 9 [MIN 4 7 ] 0 ]").value == 0);
  CHECK(evaluate("[FIRST [MAX 3 [FIRST 8 1 ] ] 9 ]").value == 8);
  CHECK(evaluate("[FIRST [MAX 3 [FIRST 8 1 ] ] 9 ]").depth == 3);
}

TEST_CASE("The paper's lists have the value and the depth they say", "[listops]") {
  for (const long depth : {10, 15}) {
    std::ifstream samples(FASTWEIGHTS_REFERENCE_DIR "/listops_depth" + std::to_string(depth) +
                          ".txt");
    int tokens = 0, expected = 0, lists = 0;
    for (std::string text; samples >> tokens >> expected && std::getline(samples, text); ++lists) {
      const Value value = evaluate(text);
      CHECK(value.value == expected);
      CHECK(value.depth == depth);
      CHECK(tokens == std::ranges::count(text, ' '));
    }
    CHECK(lists > 5);
  }
}

TEST_CASE("Lists have the value and the depth they say", "[listops]") {
  for (const long depth : {1, 2, 4, 10})
    for (std::uint64_t i = 0; i < 40; ++i) {
      const auto list = draw_list({.depth = depth}, 1, i);
      const Value value = evaluate(list_text(list));
      CHECK(value.depth == depth);
      CHECK(list.targets.back() == value.value);
      CHECK(std::count(list.targets.begin(), list.targets.end(), no_answer) + 1 ==
            static_cast<long>(list.input.size()));
    }
}

TEST_CASE("Arguments and operators are drawn evenly", "[listops]") {
  std::array<long, list_words.size()> counts{};
  long arguments = 0, lists = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const auto list = draw_list({.depth = 1}, 2, i);
    for (const int token : list.input) ++counts.at(static_cast<std::size_t>(token));
    arguments += static_cast<long>(list.input.size()) - 2;
    ++lists;
  }
  // Without lists inside, each of n arguments is a digit with probability 3/4: few are many.
  double expected = 0, all = 0;
  for (const int n : {2, 3, 4, 5}) expected += n * std::pow(0.75, n), all += std::pow(0.75, n);
  CHECK(static_cast<double>(arguments) / static_cast<double>(lists) ==
        Catch::Approx(expected / all).margin(0.07));
  for (const int op : {list_first, list_max, list_min})
    CHECK(static_cast<double>(counts.at(static_cast<std::size_t>(op))) /
              static_cast<double>(lists) ==
          Catch::Approx(1.0 / 3).margin(0.03));
  for (std::size_t digit = 0; digit < 10; ++digit)
    CHECK(static_cast<double>(counts[digit]) / static_cast<double>(arguments) ==
          Catch::Approx(0.1).margin(0.012));
}

TEST_CASE("Lists keep to the longest, and are their seed's and number's", "[listops]") {
  for (std::uint64_t i = 0; i < 40; ++i)
    CHECK(draw_list({.depth = 5, .longest = 40}, 3, i).input.size() <= 40);
  CHECK(draw_list({}, 1, 7).input == draw_list({}, 1, 7).input);
  CHECK(draw_list({}, 1, 7).input != draw_list({}, 1, 8).input);
  CHECK_THROWS_AS(draw_list({.depth = 0}, 1, 0), std::invalid_argument);
}
