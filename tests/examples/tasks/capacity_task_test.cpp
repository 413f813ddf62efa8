#include "tasks/capacity_task.hpp"

#include <algorithm>
#include <set>

#include "support/catch.hpp"

namespace {

// Every answer is the last value of its key.
void check_answers(const RecallSequence& s) {
  REQUIRE(s.queries.size() == s.answers.size());
  for (std::size_t i = 0; i < s.queries.size(); ++i) {
    int last = -1;
    for (std::size_t t = 0; t < s.keys.size(); ++t)
      if (s.keys[t] == s.queries[i]) last = s.values[t];
    CHECK(last == s.answers[i]);
  }
}

}  // namespace

TEST_CASE("capacity, setting 1: every key and value once", "[examples]") {
  fw::Random random(1);
  const RecallTask task(20, false);
  for (int i = 0; i < 20; ++i) {
    const RecallSequence s = task.training(random);
    CHECK(s.keys.size() == 20);
    CHECK(std::set<int>(s.keys.begin(), s.keys.end()).size() == 20);
    CHECK(std::set<int>(s.values.begin(), s.values.end()).size() == 20);
    CHECK(s.queries.size() == 1);
    check_answers(s);
    CHECK(task.evaluation(random).queries.size() == 20);
  }
  CHECK(RecallTask(300, false).evaluation(random).queries.size() == 200);
}

TEST_CASE("capacity, setting 2: keys come again", "[examples]") {
  fw::Random random(2);
  const RecallTask task(20, true);
  std::size_t queries = 0;
  for (int i = 0; i < 200; ++i) {
    const RecallSequence s = task.training(random), e = task.evaluation(random);
    CHECK(s.keys.size() == 40);
    CHECK(e.keys.size() == 20);
    const std::set<int> distinct(e.keys.begin(), e.keys.end());
    CHECK(std::set<int>(e.queries.begin(), e.queries.end()) == distinct);
    check_answers(s);
    check_answers(e);
    queries += e.queries.size();
  }
  // 20 (1 − (1 − 1/20)^20) = 12.83 distinct keys
  CHECK(std::abs(static_cast<double>(queries) / 200 - 12.83) < 0.3);
}

TEST_CASE("capacity: perfect addressing under the sum rule", "[examples]") {
  CHECK(perfect_addressing(20, 20, Queries::every_key) == Catch::Approx(0.108).margin(0.001));
  CHECK(perfect_addressing(20, 20, Queries::random_position) == Catch::Approx(0.170).margin(0.001));
  CHECK(perfect_addressing(20, 40, Queries::random_position) == Catch::Approx(0.268).margin(0.001));
  // By playing it.
  fw::Random random(3);
  double loss = 0;
  int count = 0;
  for (int i = 0; i < 4000; ++i) {
    const RecallSequence s = RecallTask(20, true).evaluation(random);
    for (std::size_t q = 0; q < s.queries.size(); ++q, ++count) {
      std::vector<double> mean(20);
      double n = 0;
      for (std::size_t t = 0; t < s.keys.size(); ++t)
        if (s.keys[t] == s.queries[q]) ++mean[static_cast<std::size_t>(s.values[t])], ++n;
      for (double& each : mean) each /= n;
      mean[static_cast<std::size_t>(s.answers[q])] -= 1;
      for (const double each : mean) loss += 0.5 * each * each;
    }
  }
  CHECK(loss / count ==
        Catch::Approx(perfect_addressing(20, 20, Queries::every_key)).margin(0.003));
}
