#include <fstream>
#include <map>
#include <sstream>
#include <tasks/code_execution_task.hpp>

#include "data_folder.hpp"
#include "support/catch.hpp"

namespace {

// Runs a program given as text, statement by statement, and writes what it prints in the places of
// the `;`. Written apart from the generator. A variable without a value is refused, or is 0.
std::string run_program(const std::string& text, bool keeps_assigned, bool refuses = true) {
  std::istringstream in(text);
  std::string answers, word;
  std::map<std::string, int> values;
  const auto next = [&] {
    REQUIRE(in >> word);
    answers += "_ ";
    return word;
  };
  const auto value_of = [&](const std::string& name) -> int& {
    REQUIRE((values.count(name) == 1 || !refuses));
    return values[name];
  };
  while (in >> word) {
    answers += "_ ";
    bool runs = true, conditional = false;
    if (word == "if") {
      const std::string name = next(), comparison = next();
      const int bound = std::stoi(next());
      REQUIRE(next() == ":");
      runs = comparison == "<" ? value_of(name) < bound : value_of(name) > bound;
      conditional = true;
      next();
    }
    if (word == "print") {
      const std::string name = next();
      const std::string value = std::to_string(value_of(name)) + " ";
      REQUIRE(next() == ";");
      if (runs) answers.replace(answers.size() - 2, 2, value);
      continue;
    }
    const std::string name = word, what = next();
    if (what == "=") {
      const int value = std::stoi(next());
      if (runs && !(conditional && keeps_assigned && values.count(name) == 1)) values[name] = value;
    } else {
      REQUIRE((what == "++" || what == "--"));
      int& value = value_of(name);
      if (runs) value += what == "++" ? 1 : -1;
    }
    REQUIRE(next() == ";");
  }
  return answers;
}

long count(const std::string& text, const std::string& word) {
  std::istringstream in(text);
  long n = 0;
  for (std::string each; in >> each;) n += each == word;
  return n;
}

}  // namespace

TEST_CASE("The interpreter of the tests does what a program says", "[code_execution]") {
  CHECK(run_program("x = 4 ; x ++ ; print x ; ", true) == "_ _ _ _ _ _ _ _ _ 5 ");
  CHECK(run_program("y = 1 ; if y > 2 : print y ; print y ; ", true) ==
        "_ _ _ _ _ _ _ _ _ _ _ _ _ _ 1 ");
  const std::string again = "x = 4 ; if x > 2 : x = 7 ; if x > 2 : y = 3 ; print x ; print y ; ";
  CHECK(run_program(again, true).ends_with("4 _ _ 3 "));
  CHECK(run_program(again, false).ends_with("7 _ _ 3 "));
}

TEST_CASE("The paper's programs run as their answers say", "[code_execution]") {
  for (const std::string variables : {"3", "5"}) {
    std::ifstream samples(FASTWEIGHTS_REFERENCE_DIR "/code_exec_" + variables + ".txt");
    int programs = 0;
    for (std::string text, answers; std::getline(samples, text); ++programs) {
      REQUIRE(std::getline(samples, answers));
      CHECK(run_program(text, true) == answers + " ");
      CHECK(count(text, ";") == 100);
    }
    CHECK(programs == 10);
  }
}

TEST_CASE("Programs run as their answers say", "[code_execution]") {
  for (const int variables : {1, 3, 5})
    for (const bool keeps : {true, false})
      for (std::uint64_t i = 0; i < 50; ++i) {
        const auto program = draw_program(
            {.variables = variables, .statements = 100, .keeps_assigned = keeps}, 1, i);
        REQUIRE(program.input.size() == program.targets.size());
        const std::string text = code_text(program);
        CHECK(run_program(text, keeps) == code_answer_text(program));
        // One `;` a statement, and a condition belongs to the statement behind it.
        CHECK(count(text, ";") == 100);
        CHECK(std::ranges::count_if(program.targets, [](int t) { return t != no_answer; }) ==
              count(text, "print"));
        CHECK(program.targets.back() < code_nothing);
      }
}

TEST_CASE("The quirk changes what programs answer", "[code_execution]") {
  bool differ = false;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto program = draw_program({.variables = 3, .statements = 100}, 2, i);
    const std::string text = code_text(program);
    differ = differ || run_program(text, false, false) != code_answer_text(program);
  }
  CHECK(differ);
}

TEST_CASE("Values stay in their range, and reach its ends", "[code_execution]") {
  int lowest = code_answers, highest = -1;
  for (std::uint64_t i = 0; i < 400; ++i)
    for (const int target : draw_program({.variables = 1, .statements = 4000}, 3, i).targets)
      if (target != no_answer && target != code_nothing)
        lowest = std::min(lowest, target), highest = std::max(highest, target);
  CHECK(lowest == 0);
  CHECK(highest == code_nothing - 1);
}

TEST_CASE("The four kinds of statements are equally frequent", "[code_execution]") {
  long assign = 0, print = 0, conditional = 0, all = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::string text = code_text(draw_program({.variables = 5, .statements = 102}, 4, i));
    assign += count(text, "=");
    print += count(text, "print");
    conditional += count(text, "if");
    all += 100;
  }
  const auto share = [&](long n) { return static_cast<double>(n) / static_cast<double>(all); };
  CHECK(share(conditional) == Catch::Approx(0.25).margin(0.01));
  CHECK(share(assign) == Catch::Approx(1.0 / 3 + 0.01).margin(0.012));  // 1/4 and 1/3 of 1/4
  CHECK(share(print) == Catch::Approx(1.0 / 3 + 0.01).margin(0.012));
}

TEST_CASE("A program is its seed's and number's, and settings are checked", "[code_execution]") {
  CHECK(draw_program({}, 1, 7).input == draw_program({}, 1, 7).input);
  CHECK(draw_program({}, 1, 7).input != draw_program({}, 1, 8).input);
  CHECK(draw_program({}, 2, 7).input != draw_program({}, 1, 7).input);
  CHECK_THROWS_AS(draw_program({.variables = 6, .statements = 100}, 1, 0), std::invalid_argument);
  CHECK_THROWS_AS(draw_program({.variables = 3, .statements = 1}, 1, 0), std::invalid_argument);
}
