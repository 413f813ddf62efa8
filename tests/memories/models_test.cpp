#include "support/catch.hpp"
#include "support/reductions.hpp"
#include "support/subject.hpp"

/// \file
/// Memories whose state is a model that is trained at test time: TTT and Titans.

namespace {

using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using fw::make_memory;
using fw::detail::Leaf;
using fw::detail::LeafPath;
using laws::Complex;
using laws::Index;
using laws::output_difference;
using laws::random_outputs;

TEST_CASE("TTT of single tokens with a linear regression is the delta rule", "[ttt]") {
  const auto all = random_outputs(make_memory<double>("DeltaRule", {4, 5}), 20, 3);
  const auto& in = all.inputs;
  const RowVectorXd half = RowVectorXd::Constant(20, 0.5);
  CHECK(output_difference(all, make_memory<double>("TttRegression", {4, 5, {{"batch", 1}}}),
                          {in["key"], in["value"], in["beta"] * 2, half}) <= 1e-14);
}
TEST_CASE("a mini-batch of linear regression from zero is linear attention", "[ttt]") {
  const auto all = random_outputs(make_memory<double>("LinearAttention", {4, 5}), 20, 4);
  const auto& in = all.inputs;
  const RowVectorXd one = RowVectorXd::Ones(20);
  CHECK(output_difference(all, make_memory<double>("TttRegression", {4, 5, {{"batch", 20}}}),
                          {in["key"], in["value"], one, one}) <= 1e-14);
}
TEST_CASE("Titans with a linear regression is the linear memory of Titans", "[titans]") {
  const auto linear = make_memory<double>("TitansMemory", {4, 5});
  auto all = random_outputs(linear, 20, 5);
  all.inputs["forget"] *= 0.5;
  auto state = linear.initial_state();
  fw::testing::scan(linear, state, all);
  CHECK(output_difference(all, make_memory<double>("TitansRegression", {4, 5}),
                          all.inputs.matrices) <= 1e-14);
}

// The derivative of the loss of one token, by the complex step, in every entry of the weights.
TEST_CASE("a write of TTT is a step down the loss of its layer norm", "[ttt]") {
  const fw::MemoryOptions options{3, 3, {{"batch", 1}, {"hidden", 4}}};
  const auto ttt = make_memory<double>("TttMlp", options);
  const auto complex = make_memory<Complex>("TttMlp", options);
  fw::Random random(6);
  const auto token = fw::testing::random_sequences(ttt, 1, random).inputs;
  const MatrixXd &key = token["key"], &value = token["value"];
  const auto before = laws::first_state(ttt);
  auto after = before;
  ttt.write(after, {key, value, 1.0, 1.0});
  auto state = complex.state_from(before);
  // y = k + LN(f(k)), so the error LN(f(k)) − (v − k) is y − v.
  const auto loss = [&] {
    const Eigen::VectorXcd k = key.cast<Complex>();
    Eigen::VectorXcd y(3);
    complex.read(state, {k}, {y});
    y -= value.cast<Complex>();
    return 0.5 * y.cwiseProduct(y).sum();
  };
  Index entries = 0;
  const fw::detail::Object records[] = {state.object(), before.object(), after.object()};
  fw::detail::visit_leaves(records, 3, [&](const Leaf* leaves, const LeafPath& path) {
    if (path.text().find("weights") != 0) return;
    for (Index i = 0; i < leaves->size(); ++i) {
      Complex& weight = leaves[0].entries<Complex>()[i];
      const double old = leaves[1].entries<double>()[i], updated = leaves[2].entries<double>()[i];
      weight += Complex(0, 1e-30);
      const double exact = loss().imag() / 1e-30;
      weight = old;
      // The derivative of the GELU has rounded constants.
      CHECK(std::abs(old - updated - exact) <= 1e-7);
      ++entries;
    }
  });
  CHECK(entries == 3 * 4 + 4 + 4 * 3 + 3);
}

TEST_CASE("a counter of tokens beyond the mini-batch is refused", "[ttt]") {
  const auto ttt = make_memory<double>("TttLinear", {2, 2, {{"batch", 3}}});
  auto state = ttt.initial_state();
  const fw::detail::Object record = state.object();
  fw::detail::visit_leaves(&record, 1, [](const Leaf* leaf, const LeafPath& path) {
    if (path.text() == "tokens") leaf->store_integer(0, 3);
  });
  const Eigen::VectorXd x = Eigen::VectorXd::Ones(2);
  CHECK_THROWS_AS(ttt.write(state, {x, x, 1.0, 1.0}), std::invalid_argument);
  state = ttt.initial_state();
  CHECK_NOTHROW(ttt.write(state, {x, x, 1.0, 1.0}));
}

}  // namespace
