#include <algorithm>
#include <numeric>
#include <tasks/sorting_task.hpp>

#include "support/catch.hpp"

namespace {

Ranking ascending() {
  Ranking all{};
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The share of each symbol, of 1.
std::array<double, sort_symbols> frequencies(std::span<const int> tokens) {
  std::array<double, sort_symbols> share{};
  for (const int token : tokens)
    share.at(static_cast<std::size_t>(token)) += 1 / static_cast<double>(tokens.size());
  return share;
}

}  // namespace

TEST_CASE("rank_symbols: frequent first, ties as first seen, absent ascending", "[sorting]") {
  CHECK(rank_symbols({}) == ascending());
  const std::vector<int> tokens{7, 3, 19, 3, 5, 7, 19, 19, 0};
  CHECK(rank_symbols(tokens) == Ranking{19, 7, 3, 5, 0,  // 3, 2, 2, 1, 1 times
                                        1,  2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18});
  CHECK_THROWS_AS(rank_symbols(std::vector<int>{sort_separator}), std::out_of_range);
}

TEST_CASE("A sequence to sort: tokens, separator, the targets so far", "[sorting]") {
  const std::vector<int> tokens{1, 0, 0};
  const SortSequence sequence = make_sort_sequence(tokens);
  CHECK(sequence.targets == ascending());
  std::vector<int> input{1, 0, 0, sort_separator};
  for (int s = 0; s < 19; ++s) input.push_back(s);
  CHECK(sequence.input == input);
  CHECK(std::ranges::equal(sequence.tokens(), tokens));
}

TEST_CASE("Tokens follow the mixture as it drifts", "[sorting]") {
  SymbolWeights p0{}, p1{};  // even symbols nine times as likely as odd ones, and the reverse
  for (std::size_t s = 0; s < sort_symbols; ++s) {
    p0[s] = s % 2 == 0 ? 9 : 1;
    p1[s] = 10 - p0[s];
  }
  fw::Random random(1);
  const std::size_t length = 200000, tenth = length / 10;
  const std::vector<int> tokens = draw_tokens(random, p0, p1, length);
  const auto first = frequencies(std::span(tokens).first(tenth));
  const auto last = frequencies(std::span(tokens).last(tenth));
  for (std::size_t s = 0; s < sort_symbols; ++s) {
    const double before = static_cast<double>(p0[s]) / 100, after = 0.1 - before;
    CHECK(first[s] == Catch::Approx(0.95 * before + 0.05 * after).margin(0.008));  // 4 σ
    CHECK(last[s] == Catch::Approx(0.05 * before + 0.95 * after).margin(0.008));
  }
  p1.fill(0);
  p1[13] = 1;
  CHECK(draw_tokens(random, p0, p1, 1) == std::vector<int>{13});  // the last token is all p1
}

TEST_CASE("Weights are 1 to 9, each as often", "[sorting]") {
  fw::Random random(2);
  std::array<int, 10> times{};
  for (int i = 0; i < 4500; ++i)
    for (const std::uint64_t weight : draw_weights(random)) ++times.at(weight);
  CHECK(times[0] == 0);
  for (std::size_t w = 1; w < times.size(); ++w)
    CHECK(times[w] == Catch::Approx(10000).margin(400));
}

TEST_CASE("A drawn sequence depends on seed and index alone", "[sorting]") {
  const SortSequence sequence = draw_sort_sequence(3, 5, 100);
  draw_sort_sequence(3, 6, 100);
  CHECK(draw_sort_sequence(3, 5, 100).input == sequence.input);
  CHECK(draw_sort_sequence(3, 5, 100).targets == sequence.targets);
  CHECK(draw_sort_sequence(3, 6, 100).input != sequence.input);
  CHECK(draw_sort_sequence(4, 5, 100).input != sequence.input);
  CHECK(draw_sort_sequence(5, 3, 100).input != sequence.input);
  CHECK_THROWS_WITH(draw_sort_sequence(3, 5, 0),
                    "a sequence to sort of 0 tokens, at least 1 expected");
}

TEST_CASE("Targets are a permutation of the symbols", "[sorting]") {
  for (const long length : {1L, 10L, 1000L})
    for (std::uint64_t index = 0; index < 20; ++index) {
      const SortSequence sequence = draw_sort_sequence(4, index, length);
      CHECK(sequence.input.size() == static_cast<std::size_t>(length) + 20);
      CHECK(std::ranges::is_permutation(sequence.targets, ascending()));
    }
}

TEST_CASE("window_outputs: the most frequent not yet given, the lowest of equals", "[sorting]") {
  const SortSequence sequence = make_sort_sequence({5, 5, 5, 1, 7, 1, 4, 7});
  CHECK(std::ranges::equal(std::span(sequence.targets).first(5), std::array{5, 1, 7, 4, 0}));
  const auto outputs = [&](std::size_t window) {
    const Ranking all = window_outputs(sequence, window);
    return std::vector<int>(all.begin(), all.begin() + 5);
  };
  CHECK(outputs(8) == std::vector{5, 1, 7, 4, 0});
  CHECK(outputs(3) == std::vector{1, 1, 4, 4, 0});  // 1 4 7
  CHECK(outputs(2) == std::vector{4, 4, 4, 4, 0});  // 4 7
  CHECK(outputs(0) == std::vector{0, 0, 0, 0, 0});
  CHECK(count_hits(window_outputs(sequence, 3), sequence.targets) == 18);
  const SortSequence tied = make_sort_sequence({7, 1});
  CHECK(count_hits(window_outputs(tied, 2), tied.targets) == 19);  // 1 1 0 2 …
}

TEST_CASE("window_accuracy: a guess, and published figures", "[sorting]") {
  CHECK(window_accuracy(0, 5, 1000, 512) == Catch::Approx(0.180).margin(0.01));
  CHECK(window_accuracy(128, 5, 400, 512) == Catch::Approx(0.328).margin(0.01));
  CHECK(window_accuracy(512, 5, 400, 512) == Catch::Approx(0.889).margin(0.01));
}
