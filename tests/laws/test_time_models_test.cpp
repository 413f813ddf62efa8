#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/test_time_training.hpp>
#include <fastweights/memories/rules/titans_learner.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "support/laws.hpp"
#include "support/random_start.hpp"

namespace {

using Eigen::MatrixXd;
using fw::Index;
using laws::Started;

template <class S> using TttLinear = fw::TttLinear<S>;
template <class S> using TttMlp = fw::TttMlp<S>;
template <class S> using TitansMlp = fw::TitansMlp<S>;
template <class S> using NormalisedTitans = fw::NormalisedTitans<S>;

TEST_CASE("TTT with a linear model obeys the laws", "[laws][ttt]") {
  using M = Started<TttLinear, double>;
  for (const Index d : {1, 3, 17, 65})
    for (const Index batch : {1, 4, 100}) {
      INFO("d = " << d << ", mini-batches of " << batch);
      laws::every_memory(M({d}, {.batch = batch}));
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
    laws::every_memory(M({d}, {.batch = batch, .model = {hidden}}));
  for (const Index batch : {1, 3, 20}) {
    INFO("mini-batches of " << batch);
    laws::gradients_are_exact(M({3}, {.batch = batch, .model = {5}}), 8, false);
  }
}
TEST_CASE("the memory of Titans with an MLP obeys the laws", "[laws][titans]") {
  using M = Started<TitansMlp, double>;
  for (const auto& [dk, dv, hidden] :
       {std::tuple<Index, Index, Index>{1, 1, 1}, {3, 17, 4}, {17, 3, 9}})
    laws::every_memory(M({dk, dv}, {.model = {hidden}}));
  laws::gradients_are_exact(M({3, 4}, {.model = {5}}), 9, false);
  laws::gradients_are_exact(M({1, 1}, {.model = {1}}), 4, false);
}
TEST_CASE("the normalised memory of Titans obeys the laws", "[laws][titans]") {
  using M = Started<NormalisedTitans, double>;
  for (const Index d : {3, 17}) laws::every_memory(M({d}));
  laws::gradients_are_exact(M({3}), 5, false);
}

TEST_CASE("test-time models take automatic differentiation, float and fixed sizes", "[laws]") {
  const Started<TttLinear, double> linear({4}, {.batch = 3});
  const Started<TttMlp, double> mlp({4}, {.batch = 3, .model = {5}});
  const Started<TitansMlp, double> titans({4, 3}, {.model = {5}});
  laws::takes_autodiff(linear, false);
  laws::takes_autodiff(mlp, false);
  laws::takes_autodiff(titans, false);
  laws::float_follows_double(mlp, false);
  laws::fixed_is_dynamic(fw::TttLinear<double, 4>({.batch = 3}),
                         fw::TttLinear<double>({4}, {.batch = 3}), false);
  laws::fixed_is_dynamic(fw::NormalisedTitans<double, 3>(), fw::NormalisedTitans<double>({3}),
                         false);
}

template <int Dk, int Dv>
using Regression =
    fw::TestTimeTraining<double, Dk, Dv, fw::LinearModel<false>, fw::SquaredObjective>;

TEST_CASE("TTT of single tokens with a linear regression is the delta rule", "[ttt]") {
  const fw::DeltaRule<double> delta({4, 5});
  fw::Random random(3);
  auto all = fw::testing::random_sequences(delta, 20, random);
  auto state = fw::initial_state(delta);
  laws::scan(delta, state, all);
  const auto& in = all.inputs;
  const Eigen::RowVectorXd rate = in.beta * 2, half = Eigen::RowVectorXd::Constant(20, 0.5);
  CHECK(laws::output_difference(all, Regression<-1, -1>({4, 5}, {.batch = 1}),
                                {in.key, in.value, rate, half}) <= 1e-14);
}
TEST_CASE("a mini-batch of linear regression from zero is linear attention", "[ttt]") {
  const fw::LinearAttention<double> attention({4, 5});
  fw::Random random(4);
  auto all = fw::testing::random_sequences(attention, 20, random);
  auto state = fw::initial_state(attention);
  laws::scan(attention, state, all);
  const auto& in = all.inputs;
  const Eigen::RowVectorXd one = Eigen::RowVectorXd::Ones(20);
  CHECK(laws::output_difference(all, Regression<-1, -1>({4, 5}, {.batch = 20}),
                                {in.key, in.value, one, one}) <= 1e-14);
}
TEST_CASE("Titans with a linear regression is the linear memory of Titans", "[titans]") {
  const fw::TitansMemory<double> linear({4, 5});
  fw::Random random(5);
  auto all = fw::testing::random_sequences(linear, 20, random);
  all.inputs.forget *= 0.5;
  auto state = fw::initial_state(linear);
  laws::scan(linear, state, all);
  const auto& in = all.inputs;
  using General = fw::TitansLearner<double, -1, -1, fw::LinearModel<false>, fw::SquaredObjective>;
  CHECK(laws::output_difference(all, General({4, 5}),
                                {in.key, in.value, in.rate, in.momentum, in.forget}) <= 1e-14);
}

// The derivative of the loss of one token, by the complex step, in every entry of the weights.
TEST_CASE("a write of TTT is a step down the loss of its layer norm", "[ttt]") {
  const Started<TttMlp, double> ttt({3}, {.batch = 1, .model = {4}});
  const auto complex = ttt.cast<std::complex<double>>();
  fw::Random random(6);
  const auto all = fw::testing::random_sequences(ttt, 1, random);
  const Eigen::VectorXd key = all.inputs.key, value = all.inputs.value;
  const double one = 1;
  const auto before = fw::initial_state(ttt);
  auto after = before;
  fw::write(ttt, after, {key, value, one, one});
  // y = k + LN(f(k)), so the error LN(f(k)) − (v − k) is y − v.
  const auto loss = [&](auto& state) {
    const Eigen::VectorXcd k = key.cast<std::complex<double>>();
    Eigen::VectorXcd y(3);
    fw::read(complex, state, {k}, {y});
    y -= value.cast<std::complex<double>>();
    return 0.5 * y.cwiseProduct(y).sum();
  };
  auto state = fw::initial_state(complex);
  fw::for_each_leaf(
      [&](auto& w, const auto& old, const auto& updated) {
        for (Index i = 0; i < w.size(); ++i) {
          w.data()[i] += std::complex<double>(0, 1e-30);
          const double exact = loss(state).imag() / 1e-30;
          w.data()[i] = old.data()[i];
          // The derivative of the GELU has rounded constants.
          CHECK(std::abs(old.data()[i] - updated.data()[i] - exact) <= 1e-7);
        }
      },
      state.weights, before.weights, after.weights);
}

TEST_CASE("a counter of tokens beyond the mini-batch is refused", "[ttt]") {
  const fw::TttLinear<double> ttt({2}, {.batch = 3});
  auto state = fw::initial_state(ttt);
  state.tokens = 3;
  const Eigen::VectorXd x = Eigen::VectorXd::Ones(2);
  const double one = 1;
  CHECK_THROWS_AS(fw::write(ttt, state, {x, x, one, one}), std::invalid_argument);
}
TEST_CASE("sizes that do not fit an objective or a model are refused", "[ttt]") {
  CHECK_THROWS_AS(fw::TttLinear<double>({2, 3}, {.batch = 3}), std::invalid_argument);
  CHECK_THROWS_AS(fw::TttLinear<double>({2}, {.batch = 0}), std::invalid_argument);
  CHECK_THROWS_AS(fw::TttMlp<double>({2}, {.batch = 1}), std::invalid_argument);
  CHECK_THROWS_AS(fw::TttLinear<double>({2}, {.objective = {0}}), std::invalid_argument);
}

}  // namespace
