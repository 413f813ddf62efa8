#include <fastweights/memories/rules/delta_rule.hpp>

#include "support/catch.hpp"
#include "support/laws.hpp"

/// \file
/// No call of a memory of the table overwrites what it still has to read: see core/overlap.hpp.

namespace {

using fw::Index;
using laws::runs_of;
using laws::Subject;

template <class Law> void for_every_memory(const Law& law) {
  const auto each = [&]<class S>(const std::vector<Subject>& all, S) {
    for (const Subject& subject : all) {
      INFO(subject.text());
      law(runs_of<S>(subject));
    }
  };
  for (const auto& [dk, dv] : {std::pair<Index, Index>{3, 3}, {1, 5}, {17, 4}, {3, 21}}) {
    each(laws::subjects<double>(dk, dv), 0.0);
    each(laws::subjects<float>(dk, dv), 0.0f);
  }
}

TEST_CASE("an output over an input is refused by name and changes nothing", "[laws][overlap]") {
  for_every_memory([](const auto& runs) { laws::overlaps_are_refused(runs); });
}
TEST_CASE("an output that is the value, in place, has the bits of one apart", "[laws][overlap]") {
  for_every_memory([](const auto& runs) { laws::outputs_may_be_values(runs); });
}
TEST_CASE("a view of the state is refused by name and changes nothing", "[laws][overlap]") {
  for_every_memory([](const auto& runs) { laws::views_of_the_state_are_refused(runs); });
}
TEST_CASE("a gradient over another one or an input is refused by name", "[laws][overlap]") {
  for_every_memory([](const auto& runs) { laws::gradient_overlaps_are_refused(runs); });
}
TEST_CASE("members that are rows of one matrix give the numbers of separate ones",
          "[laws][overlap]") {
  for_every_memory([](const auto& runs) { laws::interleaved_numbers_are_apart(runs); });
}

// The outputs of one head over what another head still reads.
TEST_CASE("outputs of stacked heads over keys of other heads are refused", "[overlap]") {
  using Eigen::MatrixXd;
  const auto m = fw::make_memory<double>("DeltaRule", {2, 2});
  MatrixXd all = MatrixXd::Random(8, 5);
  const MatrixXd before = all, v = MatrixXd::Ones(4, 5), beta = MatrixXd::Ones(2, 5);
  std::vector<fw::AnyState<double>> heads(2, m.initial_state());
  const auto scan = [&](Index key_row, Index output_row) {
    m.scan(std::span(heads), {all.middleRows(key_row, 4), v, beta}, {v},
           {all.middleRows(output_row, 4)});
  };
  CHECK_THROWS_WITH(scan(2, 0), Catch::Matchers::ContainsSubstring("output overlaps key"));
  CHECK(all == before);
  CHECK(heads[0] == m.initial_state());
  scan(4, 0);
  CHECK(all.bottomRows(4) == before.bottomRows(4));
  CHECK_FALSE(all.topRows(4) == before.topRows(4));
}

TEST_CASE(
    "a head whose output lies in the state of another head is refused before the first head runs",
    "[overlap]") {
  using State = fw::StateOf<fw::DeltaRule<double>>;
  const auto m = fw::make_memory<double>("DeltaRule", {2, 2});
  const Eigen::MatrixXd x = Eigen::MatrixXd::Ones(4, 1), beta = Eigen::MatrixXd::Ones(2, 1);
  std::vector<fw::AnyState<double>> heads(2, m.initial_state());
  Eigen::MatrixXd& W = heads[1].get<State>()->W;
  CHECK_THROWS_WITH(
      m.scan(std::span(heads), {x, x, beta}, {x}, {fw::AnyView<double>(W.data(), 4, 1, 4)}),
      Catch::Matchers::ContainsSubstring("output overlaps the state's W"));
  CHECK(heads[0] == m.initial_state());
  CHECK(heads[1] == m.initial_state());
}

TEST_CASE("a head with the state of another memory is refused before the first head runs",
          "[overlap]") {
  const auto m = fw::make_memory<double>("DeltaRule", {2, 2});
  const Eigen::MatrixXd x = Eigen::MatrixXd::Ones(4, 5), beta = Eigen::MatrixXd::Ones(2, 5);
  Eigen::MatrixXd y = x;
  std::vector<fw::AnyState<double>> heads{m.initial_state(), fw::AnyState<double>()};
  CHECK_THROWS_AS(m.scan(std::span(heads), {x, x, beta}, {x}, {y}), std::invalid_argument);
  CHECK(heads[0] == m.initial_state());
}

TEST_CASE("the gradient of a state may not be the initial state", "[overlap]") {
  const auto m = fw::make_memory<double>("DeltaRule", {2, 2});
  const Eigen::MatrixXd x = Eigen::MatrixXd::Ones(2, 5), beta = Eigen::MatrixXd::Ones(1, 5);
  Eigen::MatrixXd dx = x, dv = x, dbeta = beta, dq = x;
  auto state = m.initial_state();
  CHECK_THROWS_WITH(m.backward(state, {x, x, beta}, {x}, {x}, state, {dx, dv, dbeta}, {dq}),
                    Catch::Matchers::ContainsSubstring("the initial state itself"));
  CHECK(dx == x);
}

TEST_CASE("a shared chunk compares the outputs of all its queries", "[overlap]") {
  const auto m = fw::make_memory<double>("KeyValueCache", {2, 2, {{"capacity", 9}}});
  const Eigen::MatrixXd x = Eigen::MatrixXd::Ones(2, 5);
  Eigen::MatrixXd q = x, y = x;
  auto state = m.initial_state();
  using In = fw::AnyView<const double>;
  using Out = fw::AnyView<double>;
  const std::vector<In> written{x, x}, first{x}, second{q};
  const std::vector<Out> to_second{q}, to_y{y};
  const auto run = [&](const std::vector<Out>& a, const std::vector<Out>& b) {
    const std::vector<fw::AnyViews<const double>> queries{first, second};
    const std::vector<fw::AnyViews<double>> outputs{a, b};
    m.shared_chunk(state, written, queries, outputs);
  };
  CHECK_THROWS_WITH(run(to_second, to_y), Catch::Matchers::ContainsSubstring("output overlaps"));
  CHECK_THROWS_WITH(run(to_y, to_y), Catch::Matchers::ContainsSubstring("output overlaps output"));
  CHECK(state == m.initial_state());
}

}  // namespace
