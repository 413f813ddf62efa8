#include <fastweights/memories/rules/test_time_training.hpp>
#include <fastweights/memories/rules/titans_learner.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "support/laws.hpp"

namespace {

using Eigen::MatrixXd;
using fw::Index;

// A memory that starts from random weights, since an MLP of zeros learns nothing.
template <template <class> class Rule, class S> struct Started : Rule<S> {
  using Rule<S>::Rule;
  explicit Started(const Rule<S>& rule) : Rule<S>(rule) {}
  template <class T> auto cast() const { return Started<Rule, T>(Rule<S>::template cast<T>()); }
  fw::StateOf<Rule<S>> initial_state() const {
    auto s = Rule<S>::initial_state();
    fw::Random random(77);
    const auto fill = [&](auto& leaf) {
      for (Index i = 0; i < leaf.size(); ++i)
        leaf.data()[i] += S(random.normal() / std::sqrt(static_cast<double>(leaf.cols())) / 2);
    };
    fw::for_each_leaf(fill, s.weights);
    fw::for_each_leaf(fill, s.slow);
    return s;
  }
};

template <class S> using TttLinear = fw::TttLinear<S>;
template <class S> using TttMlp = fw::TttMlp<S>;
template <class S> using TitansMlp = fw::TitansMlp<S>;
template <class S> using NormalisedTitans = fw::NormalisedTitans<S>;

template <class M> void obeys(const M& m) {
  static_assert(fw::assert_memory<M>());
  const laws::MakeRun make = laws::runs_of(m, false);
  laws::step_is_write_and_read(make);
  laws::scan_is_steps(make);
  laws::state_is_a_value(make);
  laws::wrong_sizes_are_refused(make);
}

TEST_CASE("TTT with a linear model obeys the laws", "[laws][ttt]") {
  using M = Started<TttLinear, double>;
  for (const Index d : {1, 3, 17, 65})
    for (const Index batch : {1, 4, 100}) {
      INFO("d = " << d << ", mini-batches of " << batch);
      obeys(M({d}, {.batch = batch}));
    }
  for (const Index batch : {1, 3, 5, 20}) {
    INFO("mini-batches of " << batch);
    laws::gradients_are_exact(M({4}, {.batch = batch}), 13, false);
    laws::gradients_are_exact(M({2}, {.batch = batch}), 1, false);
  }
}
TEST_CASE("TTT with an MLP obeys the laws", "[laws][ttt]") {
  using M = Started<TttMlp, double>;
  for (const auto& [d, hidden, batch] :
       {std::tuple<Index, Index, Index>{1, 1, 1}, {3, 12, 4}, {17, 5, 3}})
    obeys(M({d}, {.batch = batch, .model = {hidden}}));
  for (const Index batch : {1, 3, 20}) {
    INFO("mini-batches of " << batch);
    laws::gradients_are_exact(M({3}, {.batch = batch, .model = {5}}), 8, false);
  }
}
TEST_CASE("the memory of Titans with an MLP obeys the laws", "[laws][titans]") {
  using M = Started<TitansMlp, double>;
  for (const auto& [dk, dv, hidden] :
       {std::tuple<Index, Index, Index>{1, 1, 1}, {3, 17, 4}, {17, 3, 9}})
    obeys(M({dk, dv}, {.model = {hidden}}));
  laws::gradients_are_exact(M({3, 4}, {.model = {5}}), 9, false);
  laws::gradients_are_exact(M({1, 1}, {.model = {1}}), 4, false);
}
TEST_CASE("the normalised memory of Titans obeys the laws", "[laws][titans]") {
  using M = Started<NormalisedTitans, double>;
  for (const Index d : {3, 17}) obeys(M({d}));
  laws::gradients_are_exact(M({3}), 5, false);
}

}  // namespace
