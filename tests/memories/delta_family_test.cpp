#include "support/catch.hpp"
#include "support/reductions.hpp"

/// \file
/// The family of the delta rule: which rules contain which others.

namespace {

using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using fw::make_memory;
using laws::leaf;
using laws::output_difference;
using laws::random_outputs;

const MatrixXd zeros = MatrixXd::Zero(4, 20), zero = RowVectorXd::Zero(20);

auto gated_delta_rule() {
  return random_outputs(make_memory<double>("GatedDeltaRule", {4, 5}), 20, 3);
}

TEST_CASE("Comba that looks up the decayed key is the gated delta rule", "[comba]") {
  const auto all = gated_delta_rule();
  const auto& in = all.inputs;
  const MatrixXd lookup = in["key"] * in["decay"].row(0).asDiagonal();
  CHECK(output_difference(all, make_memory<double>("Comba", {4, 5}),
                          {in["key"], in["value"], lookup, in["beta"], in["decay"]}) <= 1e-14);
}

TEST_CASE("EFLA is the delta rule with the strength of an exact flow", "[efla]") {
  const auto all = random_outputs(make_memory<double>("Efla", {4, 5}), 20, 3);
  const auto& in = all.inputs;
  const RowVectorXd squares = in["key"].colwise().squaredNorm();
  const RowVectorXd beta =
      (1 - (-squares.cwiseProduct(in["beta"]).array()).exp()) / squares.array();
  CHECK(output_difference(all, make_memory<double>("DeltaRule", {4, 5}),
                          {in["key"], in["value"], beta}) <= 1e-14);
}

TEST_CASE("EFLA keeps W bounded by the values over the keys, whatever the keys", "[efla]") {
  for (const double size : {1e-3, 1.0, 30.0, 1e4}) {
    const auto memory = make_memory<double>("Efla", {4, 5});
    fw::Random random(5);
    MatrixXd keys(4, 1000), values(5, 1000), outputs(5, 1000);
    random.fill(keys);
    random.fill(values);
    keys *= size;
    const RowVectorXd beta = RowVectorXd::Constant(1000, 1.5);
    auto state = memory.initial_state();
    memory.scan(state, {keys, values, beta}, {keys}, {outputs});
    CAPTURE(size);
    CHECK(outputs.allFinite());
    CHECK(largest_entry(leaf<double>(state.object(), "W")) * size <= 1e2);
    if (size > 100) CHECK(largest_entry(outputs - values) <= 1e-9);  // the write is exact
  }
}

TEST_CASE("the low-rank rule contains the gated delta rule", "[low_rank_rule]") {
  const auto all = gated_delta_rule();
  const auto& in = all.inputs;
  const RowVectorXd beta = in["beta"], both = in["decay"].cwiseProduct(beta);
  const MatrixXd removal = -in["key"] * both.asDiagonal(), value = in["value"] * beta.asDiagonal(),
                 decay = in["decay"].replicate(4, 1);
  CHECK(output_difference(all, make_memory<double>("LowRankRule", {4, 5}),
                          {in["key"], value, removal, in["key"], decay}) <= 1e-14);
}

TEST_CASE("the low-rank rule that removes nothing is gated linear attention", "[low_rank_rule]") {
  const auto all = random_outputs(make_memory<double>("GatedLinearAttention", {4, 5}), 20, 5);
  const auto& in = all.inputs;
  CHECK(output_difference(all, make_memory<double>("LowRankRule", {4, 5}),
                          {in["key"], in["value"], zeros, in["key"], in["decay"]}) <= 1e-14);
}

TEST_CASE("the DeltaProduct of one write is the gated delta rule", "[gated_delta_product]") {
  const auto all = gated_delta_rule();
  const auto& in = all.inputs;
  CHECK(output_difference(all, make_memory<double>("GatedDeltaProduct1", {4, 5}),
                          {in["key"], in["value"], in["beta"], in["decay"]}) <= 1e-14);
}

TEST_CASE("the second gated delta rule with one strength is Kimi delta attention",
          "[gated_delta_rule_2]") {
  const auto all = random_outputs(make_memory<double>("KimiDeltaAttention", {4, 5}), 20, 3);
  const auto& in = all.inputs;
  const MatrixXd erase = in["beta"].replicate(4, 1), write = in["beta"].replicate(5, 1);
  CHECK(output_difference(all, make_memory<double>("GatedDeltaRule2", {4, 5}),
                          {in["key"], in["value"], in["decay"], erase, write}) <= 1e-14);
}

TEST_CASE("erase then delta that erases nothing is a gated delta rule", "[erase_then_delta]") {
  const struct {
    const char *erasing, *plain;
  } both[] = {{"EraseThenDelta", "KimiDeltaAttention"}, {"ScalarEraseThenDelta", "GatedDeltaRule"}};
  for (const auto& each : both) {
    const auto all = random_outputs(make_memory<double>(each.plain, {4, 5}), 20, 6);
    const auto& in = all.inputs;
    CHECK(output_difference(
              all, make_memory<double>(each.erasing, {4, 5}),
              {in["key"], in["value"], -2 * in["key"], in["beta"], zero, in["decay"]}) <= 1e-14);
  }
}

TEST_CASE("erase then delta with a unit strength forgets what the erased key held",
          "[erase_then_delta]") {
  const auto memory = make_memory<double>("ScalarEraseThenDelta", {2, 1});
  auto state = memory.initial_state();
  const MatrixXd first = Eigen::Vector2d(1, 0), second = Eigen::Vector2d(0, 1),
                 one = MatrixXd::Ones(1, 1), value = MatrixXd::Constant(1, 1, 3);
  memory.write(state, {first, value, second, one, one, one});
  memory.write(state, {second, value, first, one, one, one});
  MatrixXd y(1, 1);
  memory.read(state, {first}, {y});
  CHECK(y(0, 0) == 0);
  memory.read(state, {second}, {y});
  CHECK(y(0, 0) == 3);
}

TEST_CASE("Q-Delta without a probe is the gated delta rule, with one Comba", "[q_delta]") {
  const auto all = random_outputs(make_memory<double>("GatedDeltaRule", {4, 5}), 20, 7);
  const auto& in = all.inputs;
  CHECK(output_difference(all, make_memory<double>("QDelta", {4, 5}),
                          {in["key"], in["value"], 3 * in["key"], in["beta"], zero, in["decay"]}) <=
        1e-14);
  const auto comba = random_outputs(make_memory<double>("Comba", {4, 5}), 20, 7);
  const auto& given = comba.inputs;
  const MatrixXd half = MatrixXd::Constant(1, 20, 0.5),
                 probe = 2 * (given["lookup"] * given["decay"].cwiseInverse().row(0).asDiagonal() -
                              given["key"]);
  CHECK(output_difference(
            comba, make_memory<double>("QDelta", {4, 5}),
            {given["key"], given["value"], probe, given["beta"], half, given["decay"]}) <= 1e-13);
}

TEST_CASE("the gated Oja rule is the transpose of Kimi delta attention", "[gated_oja_rule]") {
  const auto oja = make_memory<double>("GatedOjaRule", {4, 5}),
             kimi = make_memory<double>("KimiDeltaAttention", {5, 4});
  fw::Random random(4);
  auto all = fw::testing::random_sequences(oja, 20, random);
  auto state = oja.initial_state(), transposed = kimi.initial_state();
  fw::testing::scan(oja, state, all);
  const auto& in = all.inputs;
  MatrixXd outputs(4, 20);
  kimi.scan(transposed, {in["value"], in["key"], in["beta"], in["decay"]}, {in["value"]},
            {outputs});
  CHECK(largest_entry(leaf(state, "W") - leaf(transposed, "W").transpose()) <= 1e-14);
}

TEST_CASE("the momentum delta rule without momentum is Comba", "[momentum_delta_rule]") {
  const auto all = random_outputs(make_memory<double>("Comba", {4, 5}), 20, 5);
  const auto& in = all.inputs;
  const MatrixXd half = MatrixXd::Constant(1, 20, 0.5);
  CHECK(output_difference(all, make_memory<double>("MomentumDeltaRule", {4, 5}),
                          {in["key"], in["value"], in["lookup"], 2 * in["beta"], zero, half,
                           in["decay"]}) <= 1e-14);
}

TEST_CASE("the memory of Titans without momentum is the delta rule with twice the rate",
          "[titans]") {
  const auto all = random_outputs(make_memory<double>("DeltaRule", {4, 5}), 20, 5);
  const auto& in = all.inputs;
  CHECK(output_difference(all, make_memory<double>("TitansMemory", {4, 5}),
                          {in["key"], in["value"], in["beta"] / 2, zero, zero}) <= 1e-14);
}

}  // namespace
