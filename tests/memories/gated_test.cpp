#include "support/catch.hpp"
#include "support/reductions.hpp"
#include "support/subject.hpp"

/// \file
/// Memories that forget by a gate: gated linear attention and the gated delta rule.

namespace {

using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using fw::Index;
using fw::make_memory;
using laws::leaf;
using laws::output_difference;
using laws::random_outputs;

const MatrixXd ones = MatrixXd::Ones(4, 20), one = RowVectorXd::Ones(20);

TEST_CASE("gated linear attention without decay is linear attention", "[gated_linear_attention]") {
  const auto all = random_outputs(make_memory<double>("LinearAttention", {4, 5}), 20, 2);
  const MatrixXd &key = all.inputs["key"], &value = all.inputs["value"];
  const auto vector = make_memory<double>("GatedLinearAttention", {4, 5}),
             simple = make_memory<double>("SimpleGatedLinearAttention", {4, 5});
  CHECK(output_difference(all, vector, {key, value, ones}) <= 1e-15);
  CHECK(output_difference(all, simple, {key, value, one}) <= 1e-15);
}

TEST_CASE("gated linear attention with constant decay is retention, the Hebbian memory of rate 1",
          "[gated_linear_attention][hebbian]") {
  const auto retention =
      make_memory<double>("HebbianMemory", {4, 5, {{"decay", 0.9}, {"rate", 1.0}}});
  const auto all = random_outputs(retention, 20, 3);
  CHECK(output_difference(all, make_memory<double>("SimpleGatedLinearAttention", {4, 5}),
                          {all.inputs["key"], all.inputs["value"], 0.9 * one}) <= 1e-15);
}

TEST_CASE("gated linear attention: equal decays per key row agree with one decay",
          "[gated_linear_attention]") {
  const auto all = random_outputs(make_memory<double>("SimpleGatedLinearAttention", {4, 5}), 20, 4);
  const auto& in = all.inputs;
  CHECK(output_difference(all, make_memory<double>("GatedLinearAttention", {4, 5}),
                          {in["key"], in["value"], in["decay"].replicate(4, 1)}) <= 1e-15);
}

TEST_CASE("every key row has its own decay", "[gated_linear_attention]") {
  const auto m = make_memory<double>("GatedLinearAttention", {2, 2});
  auto s = m.initial_state();
  const Eigen::Vector2d all(1, 1), none(0, 0), decay(0.5, 0.25);
  m.write(s, {all, all, all});
  m.write(s, {none, all, decay});
  CHECK(leaf(s, "W") == (Eigen::Matrix2d() << 0.5, 0.25, 0.5, 0.25).finished());
}

TEST_CASE("the gated delta rule without decay is the delta rule", "[gated_delta_rule]") {
  const auto all = random_outputs(make_memory<double>("DeltaRule", {4, 5}), 20, 2);
  const auto& in = all.inputs;
  CHECK(output_difference(all, make_memory<double>("GatedDeltaRule", {4, 5}),
                          {in["key"], in["value"], in["beta"], one}) <= 1e-15);
  CHECK(output_difference(all, make_memory<double>("KimiDeltaAttention", {4, 5}),
                          {in["key"], in["value"], in["beta"], ones}) <= 1e-15);
}

TEST_CASE("gated delta rule: equal decays per key row agree with one decay", "[gated_delta_rule]") {
  const auto all = random_outputs(make_memory<double>("GatedDeltaRule", {4, 5}), 20, 4);
  const auto& in = all.inputs;
  CHECK(output_difference(all, make_memory<double>("KimiDeltaAttention", {4, 5}),
                          {in["key"], in["value"], in["beta"], in["decay"].replicate(4, 1)}) <=
        1e-15);
}

TEST_CASE("the gated delta rule decays first, then replaces the value of a key",
          "[gated_delta_rule]") {
  const auto m = make_memory<double>("GatedDeltaRule", {2, 2});
  auto s = m.initial_state();
  const Eigen::Vector2d first(1, 0), second(0, 1), old_value(1, 2), new_value(-3, 5);
  m.write(s, {first, old_value, 1.0, 1.0});
  m.write(s, {second, old_value, 1.0, 1.0});
  m.write(s, {first, new_value, 1.0, 0.5});
  CHECK(leaf(s, "W").col(0) == new_value);        // independent of the decay
  CHECK(leaf(s, "W").col(1) == 0.5 * old_value);  // the value of the other key only decays
}

bool has_decay(const fw::AnyMemory<double>& memory) {
  for (const fw::SignatureMember& member : memory.written())
    if (member.name == "decay") return true;
  return false;
}

// Every memory of the table with a decay and a chunkwise form.
TEST_CASE("chunks do not divide by decays", "[gated_linear_attention][gated_delta_rule]") {
  int checked = 0;
  for (const std::string& name : fw::memory_names<double>()) {
    laws::Run<double> recurrent({name, {4, 4}}, 40, 6, 5);
    if (!recurrent.memory.can().chunkable || !has_decay(recurrent.memory)) continue;
    INFO(name << ", memory " << checked);
    ++checked;
    MatrixXd& decay = recurrent.all.inputs["decay"];
    for (const Index t : {0, 7, 8, 39}) decay.col(t).setZero();
    for (const Index t : {11, 12, 13, 14}) decay.col(t).setConstant(1e-200);
    auto chunked = recurrent;
    recurrent.scan();
    chunked.memory.chunked_scan(chunked.state, chunked.all.inputs.views(),
                                chunked.all.queries.views(), chunked.all.outputs.views<double>(),
                                40);
    CHECK(laws::difference(chunked.all.outputs, recurrent.all.outputs) <= 1e-14);
    CHECK(laws::difference(chunked.state, recurrent.state) <= 1e-14);
  }
  CHECK(checked >= 2);
}

}  // namespace
