#include <algorithm>
#include <array>
#include <set>
#include <tasks/associative_retrieval_task.hpp>

#include "support/catch.hpp"

TEST_CASE("A retrieval sequence: pairs, two marks, a letter, its digit", "[retrieval]") {
  fw::Random random(1);
  for (const int pairs : {1, 2, 4, 26})
    for (int i = 0; i < 50; ++i) {
      const RetrievalSequence s = draw_retrieval(random, pairs);
      const auto n = static_cast<std::size_t>(2 * pairs);
      REQUIRE(s.input.size() == n + 3);
      std::set<int> letters;
      int answer = -1, found = 0;
      for (std::size_t t = 0; t < n; t += 2) {
        const int letter = s.input[t], digit = s.input[t + 1] - retrieval_letters;
        CHECK((letter >= 0 && letter < 26));
        CHECK((digit >= 0 && digit < 10));
        letters.insert(letter);
        if (letter == s.input.back()) answer = digit, ++found;
      }
      CHECK(letters.size() == n / 2);  // no letter twice
      CHECK((s.input[n] == retrieval_mark && s.input[n + 1] == retrieval_mark));
      CHECK(found == 1);
      CHECK(s.target == answer);
    }
  CHECK_THROWS_WITH(draw_retrieval(random, 0), "a retrieval sequence of 0 pairs, 1 to 26 expected");
  CHECK_THROWS_WITH(draw_retrieval(random, 27),
                    "a retrieval sequence of 27 pairs, 1 to 26 expected");
}

TEST_CASE("A retrieval sequence is written as in the paper", "[retrieval]") {
  CHECK(to_text(std::vector<int>{2, 35, 10, 34, 9, 29, 5, 27, 36, 36, 2}) == "c9k8j3f1??c");
}

TEST_CASE("Letters, digits and the places of queries are equally likely", "[retrieval]") {
  constexpr int pairs = 4, count = 26000;
  const SymbolSequences all = draw_retrievals(7, count, pairs);
  std::array<int, 26> first{}, last{};
  std::array<int, 10> digit{}, target{};
  std::array<int, pairs> place{};
  for (int i = 0; i < count; ++i) {
    const auto s = std::span(all.symbols).subspan(static_cast<std::size_t>(i) * 11, 11);
    ++first.at(static_cast<std::size_t>(s[0]));
    ++last.at(static_cast<std::size_t>(s[6]));
    ++digit.at(static_cast<std::size_t>(s[5] - 26));
    ++target.at(static_cast<std::size_t>(all.targets[static_cast<std::size_t>(i)]));
    for (std::size_t k = 0; k < pairs; ++k) place.at(k) += s[2 * k] == s[10];
  }
  const auto even = [&](const auto& counts, double margin) {
    for (const int n : counts)
      CHECK(n == Catch::Approx(count / static_cast<double>(counts.size())).margin(margin));
  };
  even(first, 160);  // 1000 ± 31: 5 σ
  even(last, 160);
  even(digit, 250);  // 2600 ± 48
  even(target, 250);
  even(place, 350);  // 6500 ± 70
}

TEST_CASE("A seed gives the same sequences, another seed others", "[retrieval]") {
  const SymbolSequences a = draw_retrievals(3, 100, 4), b = draw_retrievals(3, 50, 4);
  CHECK(a.length == 11);
  CHECK(a.size() == 100);
  CHECK(std::ranges::equal(std::span(a.symbols).first(550), b.symbols));
  CHECK(draw_retrievals(4, 50, 4).symbols != b.symbols);
}

TEST_CASE("Sequences are gathered one behind the other", "[retrieval]") {
  const SymbolSequences some{3, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {0, 1, 2}};
  SequenceBatch batch;
  some.gather(std::vector<int>{2, 0, 2}, batch);
  CHECK(batch.symbols == std::vector<int>{7, 8, 9, 1, 2, 3, 7, 8, 9});
}
