// Numbers of command lines that no program can use are refused by name, before it does anything.

#if defined FASTWEIGHTS_TEST_COMMAND_LINES && defined __unix__

#include "report/command_line.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

struct Ended {
  int status;
  std::string text;  // that it wrote to stderr
};

// The command line of run_model's kind in a process of its own, since parse() ends one.
Ended parsed(std::vector<std::string> arguments) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    double temperature = 1, share = 1, rate = 1, clip = 1;
    long tokens = 1;
    std::vector<double> widths;
    CommandLine app("a test");
    app.add_option("--temperature", temperature, "").not_negative();
    app.add_option("--top-p", share, "").between(0.0, 1.0);
    app.add_option("--rate", rate, "");
    app.add_option("--widths", widths, "").delimiter(',');
    app.add_positive("--clip", clip, "");
    app.add_positive("--context", tokens, "").at_most(1 << 24);
    arguments.insert(arguments.begin(), "program");
    std::vector<char*> pointers;
    for (std::string& each : arguments) pointers.push_back(each.data());
    app.parse(static_cast<int>(pointers.size()), pointers.data());
    ::_exit(0);
  }
  ::close(ends[1]);
  Ended ended{};
  std::array<char, 256> piece;
  for (ssize_t n = 0; (n = ::read(ends[0], piece.data(), piece.size())) > 0;)
    ended.text.append(piece.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  ::waitpid(child, &ended.status, 0);
  return ended;
}

}  // namespace

TEST_CASE("command lines: a number that is none, or too large, is refused by name", "[examples]") {
  using Pair = std::vector<std::string>;
  for (const Pair& given : {Pair{"--temperature", "nan"},
                            {"--temperature", "inf"},
                            {"--temperature", "-1"},
                            {"--top-p", "nan"},
                            {"--top-p", "1.5"},
                            {"--top-p", "-0.1"},
                            {"--rate", "nan"},
                            {"--rate", "-inf"},
                            {"--widths", "1,nan"},
                            {"--clip", "nan"},
                            {"--clip", "inf"},
                            {"--clip", "0"},
                            {"--context", "0"},
                            {"--context", "-5"},
                            {"--context", "16777217"},
                            {"--context", "1000000000000000000"},
                            {"--context", "99999999999999999999999"},
                            {"--context", "1e3"}}) {
    const Ended ended = parsed(given);
    INFO(given[0] << " " << given[1] << ": " << ended.text);
    CHECK(ended.status != 0);
    CHECK(ended.text.find(given[0]) != std::string::npos);
    const std::string value = given[1].substr(given[1].find(',') + 1);
    CHECK(ended.text.find(value) != std::string::npos);
  }
}

TEST_CASE("command lines: numbers at the ends of their ranges are taken", "[examples]") {
  for (const std::vector<std::string>& given : {std::vector<std::string>{"--temperature", "0"},
                                                {"--top-p", "0"},
                                                {"--top-p", "1"},
                                                {"--rate", "-1e300"},
                                                {"--widths", "1,2.5"},
                                                {"--clip", "1e-300"},
                                                {"--context", "16777216"},
                                                {"--context", "1"}}) {
    const Ended ended = parsed(given);
    INFO(given[0] << " " << given[1] << ": " << ended.text);
    CHECK(ended.status == 0);
  }
}

#endif
