// Sampling from logits: probabilities against exact ones, restrictions, bad logits, allocations.
// Stop texts that are split over pieces.

#include <cstdlib>
#include <fastweights/models/sampler.hpp>
#include <fastweights/models/stop_texts.hpp>
#include <limits>
#include <new>

#include "support/catch.hpp"

namespace {

using fw::models::Sampler;
using fw::models::SamplerOptions;
using Logits = std::vector<float>;

long allocations = 0;

SamplerOptions options(double temperature, fw::Index top_k = 0, double top_p = 1,
                       std::uint64_t seed = 1) {
  SamplerOptions all;
  all.temperature = temperature;
  all.top_k = top_k;
  all.top_p = top_p;
  all.seed = seed;
  return all;
}

// Draws often and compares the frequencies with the probabilities, to five standard deviations.
void check_frequencies(const Logits& logits, const SamplerOptions& given,
                       const std::vector<double>& expected) {
  constexpr int draws = 100000;
  Sampler sampler(given);
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) ++counts[static_cast<std::size_t>(sampler(logits))];
  for (std::size_t i = 0; i < logits.size(); ++i) {
    INFO("token " << i);
    const double p = expected[i];
    const double deviation = std::sqrt(p * (1 - p) / draws);
    CHECK(std::abs(counts[i] / double(draws) - p) <= 5 * deviation);
  }
}

Logits logs(const std::vector<double>& probabilities) {
  Logits all;
  for (const double p : probabilities) all.push_back(static_cast<float>(std::log(p)));
  return all;
}

std::string error_of(const SamplerOptions& given, const Logits& logits = {0}) {
  try {
    Sampler sampler(given);
    sampler(logits);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

}  // namespace

// Counts all allocations of this program. Not inlined, since GCC warns of a new and a free that it
// sees together.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size > 0 ? size : 1);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* const address = operator new(size, std::nothrow)) return address;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* address) noexcept { std::free(address); }
[[gnu::noinline]] void operator delete(void* address, std::size_t) noexcept { std::free(address); }
[[gnu::noinline]] void operator delete(void* address, const std::nothrow_t&) noexcept {
  std::free(address);
}

TEST_CASE("sampler: frequencies are the probabilities", "[sampler]") {
  check_frequencies(logs({0.1, 0.4, 0.2, 0.3}), options(1), {0.1, 0.4, 0.2, 0.3});
  // Temperature ½ squares the odds, 2 takes their root.
  check_frequencies(logs({0.2, 0.8}), options(0.5), {0.04 / 0.68, 0.64 / 0.68});
  check_frequencies(logs({0.2, 0.8}), options(2), {1.0 / 3, 2.0 / 3});
  check_frequencies({-infinity, 1000, 1000, -infinity}, options(1), {0, 0.5, 0.5, 0});
  check_frequencies({5}, options(1), {1});
}

TEST_CASE("sampler: top_k and top_p restrict the tokens", "[sampler]") {
  const Logits logits = logs({0.1, 0.4, 0.2, 0.3});
  check_frequencies(logits, options(1, 2), {0, 4.0 / 7, 0, 3.0 / 7});
  check_frequencies(logits, options(1, 4), {0.1, 0.4, 0.2, 0.3});
  check_frequencies(logits, options(1, 100), {0.1, 0.4, 0.2, 0.3});
  check_frequencies(logits, options(1, 0, 0.65), {0, 4.0 / 7, 0, 3.0 / 7});
  check_frequencies(logits, options(1, 0, 0.75), {0, 4.0 / 9, 2.0 / 9, 3.0 / 9});
  check_frequencies(logits, options(1, 0, 0.39), {0, 1, 0, 0});
  check_frequencies(logits, options(1, 0, 0), {0, 1, 0, 0});
  // top_p is of what top_k left: 4/7 < 0.6 < 1, although 0.4 + 0.3 > 0.6 would need two as well;
  // with 0.55 one token is enough only because of top_k.
  check_frequencies(logits, options(1, 2, 0.6), {0, 4.0 / 7, 0, 3.0 / 7});
  check_frequencies(logits, options(1, 2, 0.55), {0, 1, 0, 0});
}

TEST_CASE("sampler: min_p restricts what top_k and top_p left", "[sampler]") {
  const Logits logits = logs({0.1, 0.4, 0.2, 0.3});
  const auto with = [](double min_p, fw::Index top_k = 0, double temperature = 1) {
    SamplerOptions all = options(temperature, top_k);
    all.min_p = min_p;
    return all;
  };
  check_frequencies(logits, with(0.24), {0.1, 0.4, 0.2, 0.3});
  check_frequencies(logits, with(0.26), {0, 4.0 / 9, 2.0 / 9, 3.0 / 9});
  check_frequencies(logits, with(0.26, 2), {0, 4.0 / 7, 0, 3.0 / 7});
  check_frequencies(logits, with(0.26, 0, 0.5), {0, 16.0 / 25, 0, 9.0 / 25});  // after temperature
  check_frequencies(logits, with(1), {0, 1, 0, 0});
  CHECK(error_of(with(-0.1)).starts_with("Sampler: min_p is -0.1"));
  CHECK(error_of(with(1.1)).starts_with("Sampler: min_p is 1.1"));
  CHECK(error_of(with(not_a_number)).starts_with("Sampler: min_p is"));
}

TEST_CASE("sampler: the repetition penalty changes tokens of the text once", "[sampler]") {
  const auto with = [](double penalty, double temperature = 0) {
    SamplerOptions all = options(temperature);
    all.repetition_penalty = penalty;
    return all;
  };
  const std::vector<int> text = {1, 1, 1};
  CHECK(Sampler(with(2))(Logits{1, 3, 1.4f}, text) == 1);  // 3 / 2, not 3 / 8
  CHECK(Sampler(with(2))(Logits{1, 3, 1.6f}, text) == 2);
  CHECK(Sampler(with(2))(Logits{-3, -1, -1.9f}, text) == 2);  // −1 · 2
  CHECK(Sampler(with(2))(Logits{-3, -1, -2.1f}, text) == 1);
  CHECK(Sampler(with(0.5))(Logits{1, 0.6f, 0}, text) == 1);
  CHECK(Sampler(with(2))(Logits{1, 3, 1.6f}, {}) == 1);
  CHECK(Sampler(with(1))(Logits{1, 3, 2.9f}, text) == 1);
  Sampler drawn(with(2, 1)), same(options(1));
  for (int i = 0; i < 200; ++i) CHECK(drawn(Logits{1, 3, -1}, text) == same(Logits{1, 1.5f, -1}));
  for (const double bad : {0.0, -1.0, double(infinity), double(not_a_number)})
    CHECK(error_of(with(bad)).starts_with("Sampler: repetition_penalty is"));
  for (const int bad : {-1, 3})
    CHECK_THROWS_AS(Sampler(with(2))(Logits{1, 3, 1}, std::vector<int>{bad}),
                    std::invalid_argument);
}

TEST_CASE("stop texts: the text before the first, however it is cut", "[sampler]") {
  struct Case {
    std::vector<std::string> stops;
    std::string text, expected;
    bool found;
  };
  for (const Case& c :
       {Case{{"END"}, "one EN END two END", "one EN ", true},
        Case{{"END"}, "one EN", "one EN", false}, Case{{"aab"}, "aaaab", "aa", true},
        Case{{"abc", "b"}, "xabc", "xa", true}, Case{{"c", "abc"}, "xabc", "x", true},
        Case{{"\n\n", "é!"}, "né é!", "né ", true}, Case{{}, "text", "text", false},
        Case{{"x"}, "", "", false}}) {
    INFO(c.text);
    for (unsigned cuts = 0; cuts < 1u << std::min<std::size_t>(c.text.size(), 10); ++cuts) {
      fw::models::StopTexts stops(c.stops);
      std::string result, piece;
      for (std::size_t i = 0; i < c.text.size(); ++i) {
        piece += c.text[i];
        if ((cuts >> i % 10 & 1) == 0) continue;
        result += stops.add(piece);
        CHECK(c.expected.starts_with(result));
        piece.clear();
      }
      result += stops.add(piece);
      CHECK(stops.found() == c.found);
      CHECK(result + stops.finish() == c.expected);
      CHECK_FALSE(stops.found());
    }
  }
  CHECK_THROWS_AS(fw::models::StopTexts({"a", ""}), std::invalid_argument);
}

TEST_CASE("sampler: of equal logits the lowest ids come first", "[sampler]") {
  const Logits equal(8, 3);
  Sampler greedy(options(0));
  CHECK(greedy(Logits{1, 7, 7, 2, 7}) == 1);
  check_frequencies(equal, options(1, 2), {0.5, 0.5, 0, 0, 0, 0, 0, 0});
  check_frequencies(equal, options(1, 0, 0.375), {1.0 / 3, 1.0 / 3, 1.0 / 3, 0, 0, 0, 0, 0});
  check_frequencies(equal, options(1, 0, 0.376), {0.25, 0.25, 0.25, 0.25, 0, 0, 0, 0});
}

TEST_CASE("sampler: a seed gives the same tokens again", "[sampler]") {
  const Logits logits = logs({0.1, 0.4, 0.2, 0.3});
  Sampler a(options(1, 3, 0.99, 5)), b(options(1, 3, 0.99, 5)), other(options(1, 3, 0.99, 6));
  int differences = 0;
  for (int i = 0; i < 200; ++i) {
    const int id = a(logits);
    CHECK(b(logits) == id);
    differences += other(logits) != id;
  }
  CHECK(differences > 0);
  // The id is where the cumulative probability passes the generator's number.
  Sampler plain(options(1, 0, 1, 9));
  fw::Random random(9);
  for (int i = 0; i < 200; ++i) {
    const double u = random.uniform();
    CHECK(plain(logits) == (u < 0.1 ? 0 : u < 0.5 ? 1 : u < 0.7 ? 2 : 3));
  }
}

TEST_CASE("sampler: temperature near 0 is the largest logit", "[sampler]") {
  const Logits logits = {1, 2, std::nextafter(2.0f, 3.0f), -1e30f, 0};
  for (const double temperature : {0.0, 1e-300, std::numeric_limits<double>::denorm_min(), 1e-12}) {
    Sampler sampler(options(temperature));
    for (int i = 0; i < 20; ++i) CHECK(sampler(logits) == 2);
  }
}

TEST_CASE("sampler: takes vectors of Eigen and of doubles", "[sampler]") {
  Sampler sampler(options(0));
  Eigen::MatrixXd logits(3, 2);
  logits << 1, 2, 5, 4, 3, 9;
  CHECK(sampler(logits.col(0)) == 1);
  CHECK(sampler(logits.col(1)) == 2);
  CHECK(sampler(std::vector<double>{0, 1}) == 1);
}

TEST_CASE("sampler: bad options and logits are errors", "[sampler]") {
  CHECK(error_of(options(-1)).starts_with("Sampler: temperature is -1"));
  CHECK(error_of(options(std::nan(""))).starts_with("Sampler: temperature is "));
  CHECK(error_of(options(HUGE_VAL)).starts_with("Sampler: temperature is inf"));
  CHECK(error_of(options(1, -1)).starts_with("Sampler: top_k is -1"));
  CHECK(error_of(options(1, 0, -0.1)).starts_with("Sampler: top_p is -0.1"));
  CHECK(error_of(options(1, 0, 1.1)).starts_with("Sampler: top_p is 1.1"));
  CHECK(error_of(options(1, 0, std::nan(""))).starts_with("Sampler: top_p is "));
  for (const double temperature : {0.0, 1.0}) {
    const SamplerOptions given = options(temperature);
    CHECK(error_of(given, {1, not_a_number}) == "Sampler: logit 1 is NaN");
    CHECK(error_of(given, {not_a_number, 1}) == "Sampler: logit 0 is NaN");
    CHECK(error_of(given, {1, infinity}) == "Sampler: logit 1 is infinite");
    CHECK(error_of(given, {-infinity, -infinity}).starts_with("Sampler: there is no logit"));
    CHECK(error_of(given, {}).starts_with("Sampler: there is no logit"));
  }
}

TEST_CASE("sampler: allocates nothing after the first call", "[sampler]") {
  Logits logits(1000);
  fw::Random random(3);
  for (float& each : logits) each = static_cast<float>(random.normal());
  const long before_any = allocations;
  CHECK(before_any > 0);  // the counter works
  for (const SamplerOptions& given : {options(0), options(1), options(1, 50), options(1, 0, 0.9),
                                      options(0.7, 100, 0.8), options(1, 1, 0)}) {
    Sampler sampler(given);
    sampler(logits);
    const long before = allocations;
    for (int i = 0; i < 50; ++i) sampler(logits);
    const long after = allocations;
    CHECK(after == before);
  }
}
