#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/gated_slot_attention.hpp>
#include <fastweights/memories/rules/hgrn.hpp>
#include <fastweights/memories/rules/mlstm.hpp>

#include "support/laws.hpp"

namespace {

using fw::Dynamic;
using fw::Index;
using fw::KeyValueDecay;
using fw::KeyValueVectorDecay;

TEST_CASE("HGRN obeys the laws", "[laws][hgrn]") {
  for (const Index d : {1, 3, 17, 64, 65}) {
    INFO("d = " << d);
    laws::all(fw::Hgrn<double>(d));
  }
  laws::gradients_are_exact(fw::Hgrn<double>(5), 17, false);
  laws::fixed_is_dynamic(fw::Hgrn<double, 3>(), fw::Hgrn<double>(3), false);
}
TEST_CASE("mLSTM obeys the laws", "[laws][mlstm]") {
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 1}, {3, 17}, {65, 4}, {64, 64}}) {
    INFO("d_v = " << dv << ", d_k = " << dk);
    laws::all(fw::Mlstm<double>({dk, dv}));
  }
  laws::gradients_are_exact(fw::Mlstm<double>({5, 4}), 17, false);
  laws::gradients_are_exact(fw::Mlstm<double>({1, 3}), 6, false);
  laws::gradients_are_exact(fw::Mlstm<double>({2, 3}, 0.5), 9, false);
  laws::fixed_is_dynamic(fw::Mlstm<double, 3, 4>(), fw::Mlstm<double>({3, 4}), false);
}
TEST_CASE("gated slot attention obeys the laws", "[laws][gated_slot_attention]") {
  using Slots = fw::GatedSlotAttention<double>;
  for (const auto& [dk, dv, slots] :
       {std::tuple<Index, Index, Index>{1, 1, 1}, {3, 17, 65}, {65, 4, 3}}) {
    INFO("d_v = " << dv << ", d_k = " << dk << ", slots = " << slots);
    laws::all(Slots({dk, dv}, slots));
  }
  laws::gradients_are_exact(Slots({5, 4}, 3), 17, false);
  laws::gradients_are_exact(Slots({1, 3}, 1), 6, false);
  laws::fixed_is_dynamic(fw::GatedSlotAttention<double, 3, 4, 2>(), Slots({3, 4}, 2), false);
}

TEST_CASE("HGRN is the row of gated linear attention with value 1", "[hgrn]") {
  const fw::Hgrn<double> hgrn(5);
  fw::Random random(3);
  auto all = fw::testing::random_sequences(hgrn, 20, random);
  auto state = fw::initial_state(hgrn);
  laws::scan(hgrn, state, all);
  const fw::GatedLinearAttention<double> attention({5, 1});
  auto row = fw::initial_state(attention);
  const Eigen::RowVectorXd ones = Eigen::RowVectorXd::Ones(20);
  Eigen::RowVectorXd outputs(20);
  fw::scan(attention, row, {all.inputs.value, ones, all.inputs.decay}, {all.inputs.value},
           {outputs});
  CHECK(largest_entry(state.h - row.W.transpose()) <= 1e-14);
}

// i = 0 and log σ(f) = log α. The denominator is 1 as long as |n·q| stays below e^{−m}.
TEST_CASE("mLSTM with short queries is gated linear attention", "[mlstm]") {
  using Attention = fw::GatedLinearAttention<double, Dynamic, Dynamic, KeyValueDecay>;
  const Attention attention({4, 5});
  fw::Random random(4);
  auto all = fw::testing::random_sequences(attention, 20, random);
  all.queries.query *= 1e-3;
  auto state = fw::initial_state(attention);
  laws::scan(attention, state, all);
  all.outputs.output /= 1 + 1e-6;
  const auto& in = all.inputs;
  const Eigen::RowVectorXd input = Eigen::RowVectorXd::Zero(20),
                           forget = -(in.decay.array().inverse() - 1).log();
  CHECK(laws::output_difference(all, fw::Mlstm<double>({4, 5}),
                                {in.key, in.value, input, forget}) <= 1e-8);
}

template <class S> auto mlstm_outputs(S input_gate, S forget_gate, Index steps) {
  const fw::Mlstm<S, 1, 1> m;
  auto state = fw::initial_state(m);
  using One = Eigen::Matrix<S, 1, 1>;
  const One one = One::Ones();
  One y;
  for (Index t = 0; t < steps; ++t)
    fw::step(m, state, {one, one, input_gate, forget_gate}, {one}, {y});
  return std::pair(y[0], state);
}

TEST_CASE("mLSTM stays finite for gates of any size and many tokens", "[mlstm]") {
  for (const float input : {-1e15F, -100.F, 0.F, 100.F, 1e15F})
    for (const float forget : {-1e15F, -100.F, 0.F, 100.F, 1e15F}) {
      CAPTURE(input, forget);
      const auto [y, state] = mlstm_outputs<float>(input, forget, 1000);
      CHECK((y >= 0 && y <= 1.001F));
      CHECK(std::isfinite(state.log_scale));
      if (input > 0) CHECK(std::abs(y - 1) <= 1e-5F);  // all values are 1, and so is their mean
      const fw::Mlstm<float, 1, 1> m;
      Eigen::Matrix<float, 1, 1> one(1.F), dy(1.F), dk(0.F), dv(0.F), dq(0.F);
      float di = 0, df = 0;
      auto ds = fw::zero_gradient(m);
      m.read_vjp(state, {one}, {dy}, ds, {dq});
      m.write_vjp(state, {one, one, input, forget}, ds, {dk, dv, di, df});
      CHECK((std::isfinite(dq[0]) && std::isfinite(dk[0]) && std::isfinite(dv[0])));
      CHECK((std::isfinite(di) && std::isfinite(df) && std::isfinite(ds.log_scale)));
    }
  CHECK(std::abs(mlstm_outputs<float>(0, 100, 20'000'000).first - 1) <= 1e-5F);
}

TEST_CASE("mLSTM does not depend on the scale of its state", "[mlstm]") {
  const fw::Mlstm<double> m({4, 5});
  fw::Random random(6);
  auto state = fw::testing::random_state(m, 5, random), scaled = state;
  scaled.W *= std::exp(3.);
  scaled.normaliser *= std::exp(3.);
  scaled.log_scale -= 3;
  Eigen::VectorXd q = Eigen::VectorXd::Constant(4, 0.3), y(5), z(5);
  fw::read(m, state, {q}, {y});
  fw::read(m, scaled, {q}, {z});
  CHECK(largest_entry(y - z) <= 1e-4);  // but for ε
}

// A slot that is written by one token alone holds this token: the softmax runs over tokens.
TEST_CASE("gated slot attention with one slot per token is softmax attention",
          "[gated_slot_attention]") {
  const Index steps = 6;
  const fw::GatedSlotAttention<double> m({4, 5}, steps);
  fw::Random random(7);
  auto all = fw::testing::random_sequences(m, steps, random);
  all.inputs.decay.setOnes();
  all.inputs.strength.setIdentity();
  auto state = fw::initial_state(m);
  laws::scan(m, state, all);
  const Eigen::VectorXd weights =
      (all.inputs.key.transpose() * all.queries.query.col(steps - 1)).array().exp();
  const Eigen::VectorXd expected = all.inputs.value * weights / weights.sum();
  CHECK(largest_entry(all.outputs.output.col(steps - 1) - expected) <= 1e-14);
}

TEST_CASE("gated slot attention takes large scores", "[gated_slot_attention]") {
  const fw::GatedSlotAttention<float> m({2, 2}, 3);
  auto state = fw::initial_state(m);
  state.keys << 1e20F, 0, -1e20F, 0, 0, 1;
  state.values << 1, 2, 3, 4, 5, 6;
  const Eigen::Vector2f q(1e10F, 0);
  Eigen::Vector2f y;
  fw::read(m, state, {q}, {y});
  CHECK(y == Eigen::Vector2f(1, 4));
}

}  // namespace
