#include <array>
#include <bit>
#include <complex>
#include <fastweights/memories/rules/mamba3_mimo.hpp>
#include <numbers>

#include "support/catch.hpp"
#include "support/reductions.hpp"
#include "support/sizes.hpp"

/// \file
/// Memories that forget by gates: HGRN, RWKV-4, mLSTM, normalised gated attention, gated slot
/// attention, cyclic flow attention, the selective scan, Mamba-3 with one and with several ranks,
/// and log-linear attention.

namespace {

using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;
using fw::Index;
using fw::make_memory;
using laws::leaf;
using laws::output_difference;
using laws::outputs_of;
using laws::random_outputs;
using State = fw::AnyState<double>;

// Writes the outputs of the sequence again, from the initial state.
State scan(const fw::AnyMemory<double>& m, laws::AnySequences<double>& all) {
  State state = m.initial_state();
  fw::testing::scan(m, state, all);
  return state;
}

TEST_CASE("HGRN is the row of gated linear attention with value 1", "[hgrn]") {
  const auto hgrn = make_memory<double>("Hgrn", {5});
  auto all = random_outputs(hgrn, 20, 3);
  const State state = scan(hgrn, all);
  const auto attention = make_memory<double>("GatedLinearAttention", {5, 1});
  State row = attention.initial_state();
  const MatrixXd &value = all.inputs["value"], &decay = all.inputs["decay"];
  const RowVectorXd ones = RowVectorXd::Ones(20);
  RowVectorXd outputs(20);
  attention.scan(row, {value, ones, decay}, {value}, {outputs});
  CHECK(largest_entry(leaf(state, "h") - leaf(row, "W").transpose()) <= 1e-14);
}

TEST_CASE("RWKV-4 is a mean of values with weights that decay", "[rwkv4]") {
  constexpr Index d = 3, steps = 12;
  const auto m = make_memory<double>("Rwkv4", {d});
  auto all = random_outputs(m, steps, 5);
  const VectorXd rate = VectorXd::LinSpaced(d, 0, 1.5), bonus = VectorXd::LinSpaced(d, -1, 1);
  State state = m.initial_state();
  leaf(state, "slow.rate") = rate;
  leaf(state, "slow.bonus") = bonus;
  fw::testing::scan(m, state, all);
  const MatrixXd &key = all.inputs["key"], &value = all.inputs["value"];
  for (Index t = 0; t < steps; ++t)
    for (Index c = 0; c < d; ++c) {
      double sum = std::exp(bonus[c] + all.queries["key"](c, t));
      double mean = sum * all.queries["value"](c, t);
      for (Index i = 0; i < t; ++i) {
        const double weight = std::exp(key(c, i) - double(t - 1 - i) * rate[c]);
        sum += weight;
        mean += weight * value(c, i);
      }
      CHECK(std::abs(all.outputs["output"](c, t) - mean / sum) <= 1e-14);
    }
}

TEST_CASE("RWKV-4 stays finite for keys of any size", "[rwkv4]") {
  const auto m = make_memory<float>("Rwkv4", {1});
  for (const float first : {-1e15F, -100.F, 0.F, 100.F, 1e15F})
    for (const float key : {-1e15F, -100.F, 0.F, 100.F, 1e15F}) {
      CAPTURE(first, key);
      auto state = m.initial_state();
      float y = NAN, dk = 0, dv = 0, dqk = 0, dqv = 0;
      m.write(state, {first, 3.F});
      for (int t = 0; t < 1000; ++t) m.step(state, {key, 3.F}, {key, 3.F}, {y});
      CHECK(std::abs(y - 3) <= 1e-5F);
      CHECK((leaf(state, "maximum").allFinite() && leaf(state, "numerator").allFinite()));
      auto ds = m.zero_gradient();
      m.backward(state, {key, 3.F}, {key, 3.F}, {1.F}, ds, {dk, dv}, {dqk, dqv});
      CHECK((std::isfinite(dk) && std::isfinite(dv) && std::isfinite(dqk) && std::isfinite(dqv)));
      CHECK((leaf(ds, "maximum").allFinite() && leaf(ds, "slow.rate").allFinite()));
    }
}

// i = 0 and log σ(f) = log α. The denominator is 1 as long as |n·q| stays below e^{−m}.
TEST_CASE("mLSTM with short queries is gated linear attention", "[mlstm]") {
  const auto attention = make_memory<double>("SimpleGatedLinearAttention", {4, 5});
  auto all = random_outputs(attention, 20, 4);
  all.queries["query"] *= 1e-3;
  scan(attention, all);
  all.outputs["output"] /= 1 + 1e-6;
  const auto& in = all.inputs;
  const MatrixXd input = RowVectorXd::Zero(20), forget = -(in["decay"].array().inverse() - 1).log();
  CHECK(output_difference(all, make_memory<double>("Mlstm", {4, 5}),
                          {in["key"], in["value"], input, forget}) <= 1e-8);
}

TEST_CASE("mLSTM stays finite for gates of any size", "[mlstm]") {
  const auto m = make_memory<float>("Mlstm", {1, 1});
  for (const float input : {-1e15F, -100.F, 0.F, 100.F, 1e15F})
    for (const float forget : {-1e15F, -100.F, 0.F, 100.F, 1e15F}) {
      CAPTURE(input, forget);
      auto state = m.initial_state();
      float y = NAN;
      for (int t = 0; t < 1000; ++t) m.step(state, {1.F, 1.F, input, forget}, {1.F}, {y});
      CHECK((y >= 0 && y <= 1.001F));
      CHECK(leaf(state, "log_scale").allFinite());
      if (input > 0) CHECK(std::abs(y - 1) <= 1e-5F);  // all values are 1, and so is their mean
      float dk = 0, dv = 0, di = 0, df = 0, dq = 0;
      auto ds = m.zero_gradient();
      m.backward(state, {1.F, 1.F, input, forget}, {1.F}, {1.F}, ds, {dk, dv, di, df}, {dq});
      CHECK((std::isfinite(dq) && std::isfinite(dk) && std::isfinite(dv)));
      CHECK((std::isfinite(di) && std::isfinite(df) && leaf(ds, "log_scale").allFinite()));
    }
}

TEST_CASE("mLSTM answers a mean after 20 million tokens in float", "[mlstm]") {
  const auto m = make_memory<float>("Mlstm", {1, 1});
  auto state = m.initial_state();
  constexpr Index block = 100'000;
  const Eigen::RowVectorXf ones = Eigen::RowVectorXf::Ones(block), open = 100 * ones,
                           none = 0 * ones;
  Eigen::RowVectorXf y(block);
  const Index tokens = sizes<Index>({20'000'000}, {block})[0];  // sanitizers: a minute in vain
  for (Index t = 0; t < tokens; t += block) m.scan(state, {ones, ones, none, open}, {ones}, {y});
  CHECK(std::abs(y[block - 1] - 1) <= 1e-5F);
}

TEST_CASE("mLSTM does not depend on the scale of its state", "[mlstm]") {
  const auto m = make_memory<double>("Mlstm", {4, 5});
  auto all = random_outputs(m, 5, 6);
  const State state = scan(m, all);
  State scaled = state;
  leaf(scaled, "W") *= std::exp(3.);
  leaf(scaled, "normaliser") *= std::exp(3.);
  leaf(scaled, "log_scale").array() -= 3;
  const VectorXd q = VectorXd::Constant(4, 0.3);
  VectorXd y(5), z(5);
  m.read(state, {q}, {y});
  m.read(scaled, {q}, {z});
  CHECK(largest_entry(y - z) <= 1e-4);  // but for ε
}

TEST_CASE("normalised gated attention without decay is normalised linear attention",
          "[normalised_gated_attention]") {
  const auto all = random_outputs(
      make_memory<double>("NormalisedLinearAttention", {4, 5, {{"epsilon", 1e-6}}}), 20, 3, true);
  const auto& in = all.inputs;
  CHECK(output_difference(all, make_memory<double>("NormalisedGatedAttention", {4, 5}),
                          {in["key"], in["value"], RowVectorXd::Ones(20)}) <= 1e-14);
}
TEST_CASE("normalised gated attention answers a mean of equal values",
          "[normalised_gated_attention]") {
  const auto m = make_memory<double>("NormalisedGatedAttention", {4, 1});
  const auto all = random_outputs(m, 20, 4, true);
  const auto& in = all.inputs;
  const MatrixXd ones = RowVectorXd::Ones(20);
  const MatrixXd y = outputs_of(m, {in["key"], ones, in["decay"]}, all.queries.matrices);
  CHECK(largest_entry(y - ones) <= 1e-4);
}

// A slot that is written by one token alone holds this token: the softmax runs over tokens.
TEST_CASE("gated slot attention with one slot per token is softmax attention",
          "[gated_slot_attention]") {
  const Index steps = 6;
  const auto m = make_memory<double>("GatedSlotAttention", {4, 5, {{"slots", steps}}});
  auto all = random_outputs(m, steps, 7);
  all.inputs["decay"].setOnes();
  all.inputs["strength"].setIdentity();
  scan(m, all);
  const MatrixXd &key = all.inputs["key"], &value = all.inputs["value"];
  const VectorXd weights = (key.transpose() * all.queries["query"].col(steps - 1)).array().exp();
  const VectorXd expected = value * weights / weights.sum();
  CHECK(largest_entry(all.outputs["output"].col(steps - 1) - expected) <= 1e-14);
}

TEST_CASE("gated slot attention takes large scores", "[gated_slot_attention]") {
  const auto m = make_memory<float>("GatedSlotAttention", {2, 2, {{"slots", 3}}});
  auto state = m.initial_state();
  leaf(state, "keys") << 1e20F, 0, -1e20F, 0, 0, 1;
  leaf(state, "values") << 1, 2, 3, 4, 5, 6;
  const Eigen::Vector2f q(1e10F, 0);
  Eigen::Vector2f y;
  m.read(state, {q}, {y});
  CHECK(y == Eigen::Vector2f(1, 4));
}

// Σ_n (c_n/C) cos(2πn a/C): how much of a token of age a is at position 0 of a ring.
double ring_weight(Index frequencies, double age) {
  const double positions = double(2 * frequencies - 1);
  double sum = 1;
  for (Index n = 1; n < frequencies; ++n)
    sum += 2 * std::cos(2 * 3.14159265358979323846 * double(n) * age / positions);
  return sum / positions;
}

TEST_CASE("cyclic flow attention is softmax attention over positions that tokens pass",
          "[cyclic_flow_attention]") {
  constexpr Index steps = 20;
  for (const auto& [dk, dv, frequencies] :
       {std::array<Index, 3>{3, 2, 4}, {1, 1, 1}, {3, 1, 2}, {17, 3, 9}, {1, 17, 3}}) {
    CAPTURE(dk, dv, frequencies);
    const auto m = make_memory<double>("CyclicFlowAttention",
                                       {dk, dv, {{"frequencies", double(frequencies)}}});
    auto all = random_outputs(m, steps, 5);
    const MatrixXd &key = all.inputs["key"], &value = all.inputs["value"],
                   &advance = all.inputs["advance"], &query = all.queries["query"];
    const Index positions = 2 * frequencies - 1;
    fw::Random random(8);
    MatrixXd readout(positions, positions);
    for (double& x : readout.reshaped()) x = random.normal();
    State state = m.initial_state();
    leaf(state, "clock")(0) = 1.3;
    leaf(state, "slow.readout") = readout;
    fw::testing::scan(m, state, all);
    for (Index t = 0; t < steps; ++t) {
      MatrixXd keys = MatrixXd::Zero(positions, dk), values = MatrixXd::Zero(dv, positions);
      double age = 0, decay = 1;
      for (Index i = t; i >= 0; --i) {
        for (Index r = 0; r < positions; ++r) {
          const double weight =
              all.inputs["beta"](i) * decay * ring_weight(frequencies, age - double(r));
          keys.row(r) += weight * key.col(i).transpose();
          values.col(r) += weight * value.col(i);
        }
        age += advance(i);
        decay *= all.inputs["decay"](i);
      }
      const VectorXd p = (readout * (keys * query.col(t))).array().exp();
      const VectorXd expected = values * (readout.transpose() * p) / p.sum();
      CHECK(largest_entry(all.outputs["output"].col(t) - expected) <=
            1e-12 * std::max(1.0, largest_entry(expected)));
    }
  }
}

TEST_CASE("cyclic flow attention with a tick a token is softmax attention over one turn",
          "[cyclic_flow_attention]") {
  constexpr Index steps = 7;
  const auto cache =
      make_memory<double>("KeyValueCache", {4, 5, {{"capacity", steps}, {"scale", 1}}});
  const auto all = random_outputs(cache, steps, 3);
  const MatrixXd ones = MatrixXd::Ones(1, steps);
  const MatrixXd y = outputs_of(
      make_memory<double>("CyclicFlowAttention", {4, 5, {{"frequencies", (steps + 1) / 2}}}),
      {all.inputs["key"], all.inputs["value"], ones, ones, ones}, {all.queries["query"]});
  CHECK(largest_entry(y.col(steps - 1) - all.outputs["output"].col(steps - 1)) <= 1e-13);
}

// The softmax of one score is 1.
TEST_CASE("cyclic flow attention of one position is a decaying sum of values",
          "[cyclic_flow_attention]") {
  const auto m = make_memory<double>("CyclicFlowAttention", {2, 3, {{"frequencies", 1}}});
  const auto all = random_outputs(m, 20, 4);
  VectorXd sum = VectorXd::Zero(3);
  for (Index t = 0; t < 20; ++t) {
    sum = all.inputs["decay"](t) * sum + all.inputs["beta"](t) * all.inputs["value"].col(t);
    CHECK(largest_entry(all.outputs["output"].col(t) - sum) <= 1e-14);
  }
}

TEST_CASE("the clock of cyclic flow attention stays on the ring, and turns change nothing",
          "[cyclic_flow_attention]") {
  const auto m = make_memory<float>("CyclicFlowAttention", {1, 1, {{"frequencies", 4}}});
  auto state = m.initial_state();
  for (const float advance : {-1e-30F, 20.F, -20.F, 1e-9F, -1e-9F, 7.F, -7.F, 1e14F, -1e14F})
    for (int t = 0; t < 100; ++t) {
      m.write(state, {1.F, 2.F, 0.5F, 0.9F, advance});
      const float at = leaf(state, "clock")(0);
      CHECK((at >= 0 && at < 7));
    }
  float y = NAN, turned = NAN;
  leaf(state, "clock")(0) = 1.5F;
  m.read(state, {1.F}, {y});
  leaf(state, "clock")(0) = 1.5F - 14;
  m.read(state, {1.F}, {turned});
  CHECK(std::abs(y - turned) <= 1e-5F);
}

TEST_CASE("cyclic flow attention takes large scores, and refuses no frequency",
          "[cyclic_flow_attention]") {
  const auto m = make_memory<float>("CyclicFlowAttention", {1, 1, {{"frequencies", 2}}});
  auto state = m.initial_state();
  for (const float value : {1.F, 2.F, 3.F}) m.write(state, {1e15F * value, value, 1.F, 1.F, 1.F});
  float y = NAN;
  m.read(state, {1e15F}, {y});  // of the newest, which is at position 0
  CHECK(std::abs(y - 3) <= 1e-5F);
  CHECK_THROWS_WITH(make_memory<float>("CyclicFlowAttention", {4, 4, {{"frequencies", 0}}}),
                    "CyclicFlowAttention: the number of frequencies is 0, expected at least 1");
}

// With equal decays in a row's entries, A_ij = a, the scan of one value row is gated attention.
TEST_CASE("the selective scan with equal decays is gated linear attention", "[selective_scan]") {
  const auto attention = make_memory<double>("SimpleGatedLinearAttention", {4, 1});
  auto all = random_outputs(attention, 20, 5);
  const State expected = scan(attention, all);
  const auto m = make_memory<double>("SelectiveScan", {4, 1});
  State state = m.initial_state();
  leaf(state, "slow.A").setConstant(-0.7);
  const auto& in = all.inputs;
  const RowVectorXd step = -in["decay"].array().log() / 0.7,
                    before = (step.array().exp() - 1).log(),
                    value = in["value"].array() / step.array(), zero = RowVectorXd::Zero(20);
  MatrixXd y(1, 20);
  m.scan(state, {in["key"], value, before}, {all.queries["query"], value, zero}, {y});
  CHECK(largest_entry(leaf(state, "W") - leaf(expected, "W")) <= 1e-13);
  CHECK(y.isZero(0));  // silu(0)
}
TEST_CASE("the selective scan stays finite for steps of any size", "[selective_scan]") {
  const auto m = make_memory<float>("SelectiveScan", {3, 2});
  for (const float size : {-1e15F, -100.F, 0.F, 100.F, 1e15F}) {
    auto state = m.initial_state();
    const Eigen::Vector3f k = Eigen::Vector3f::Ones();
    const Eigen::Vector2f v = Eigen::Vector2f::Ones(), step = Eigen::Vector2f::Constant(size);
    Eigen::Vector2f y(NAN, NAN);
    for (int t = 0; t < 5; ++t) m.step(state, {k, v, step}, {k, v, step}, {y});
    CHECK(leaf(state, "W").allFinite());
    CHECK(y.allFinite());
  }
}

TEST_CASE("Mamba-3 that turns no key and writes one token is gated linear attention", "[mamba3]") {
  const auto attention = make_memory<double>("SimpleGatedLinearAttention", {4, 5});
  auto all = random_outputs(attention, 20, 6);
  const State expected = scan(attention, all);
  const auto m = make_memory<double>("Mamba3", {4, 5});
  const auto& in = all.inputs;
  const RowVectorXd ones = RowVectorXd::Ones(20);
  const MatrixXd zero = MatrixXd::Zero(2, 20), open = MatrixXd::Constant(5, 20, 1e3);
  State state = m.initial_state();
  MatrixXd y(5, 20);
  m.scan(state, {in["key"], in["value"], in["decay"], ones, ones, zero},
         {all.queries["query"], in["value"], open}, {y});
  CHECK(largest_entry(leaf(state, "W") - leaf(expected, "W")) <= 1e-14);
  CHECK(largest_entry(y / 1e3 - all.outputs["output"]) <= 1e-14);
}
// A product of a key and a query depends on the difference of their angles alone.
TEST_CASE("Mamba-3 with equal angles everywhere reads as without them", "[mamba3]") {
  const auto m = make_memory<double>("Mamba3", {4, 5});
  auto all = random_outputs(m, 20, 7);
  all.inputs["angles"].setZero();
  scan(m, all);
  auto turned = all;
  State state = m.initial_state();
  leaf(state, "angle").setConstant(1.3);
  fw::testing::scan(m, state, turned);
  CHECK(largest_entry(all.outputs["output"] - turned.outputs["output"]) <= 1e-14);
}
TEST_CASE("angles of Mamba-3 stay within a circle", "[mamba3]") {
  const auto m = make_memory<float>("Mamba3", {2, 1});
  auto state = m.initial_state();
  const Eigen::Vector2f k(1, 0);
  for (const float angle : {-1e-30F, 20.F, -20.F, 1e-9F, -1e-9F})
    for (int t = 0; t < 100; ++t) {
      m.write(state, {k, 1.F, 0.9F, 1.9F, 0.5F, angle});
      const float at = leaf(state, "angle")(0);
      CHECK((at >= 0 && at < 6.2831855F));
    }
}
TEST_CASE("Mamba-3 refuses too many angles and a share over 1", "[mamba3]") {
  CHECK_THROWS_WITH(make_memory<float>("Mamba3", {4, 4, {{"angles", 3}}}),
                    "Mamba3: the number of angles is 3, expected 0 to 2");
  const auto m = make_memory<double>("Mamba3", {2, 1});
  auto state = m.initial_state();
  const Eigen::Vector2d k(1, 0);
  CHECK_THROWS_WITH(m.checked_write(state, {k, 1., 1., 1., 1.5, 1.}),
                    Catch::Matchers::ContainsSubstring("share is 1.5"));
  CHECK(state == m.initial_state());
  CHECK_NOTHROW(m.checked_write(state, {k, 1., 1., 1., 1., 1.}));
}

// R(θ) x with complex numbers.
VectorXd turned(const VectorXd& x, const VectorXd& angle) {
  VectorXd y = x;
  for (Index i = 0; i < angle.size(); ++i) {
    const std::complex<double> z = std::complex(x[2 * i], x[2 * i + 1]) * std::polar(1.0, angle[i]);
    y[2 * i] = z.real();
    y[2 * i + 1] = z.imag();
  }
  return y;
}

// The outputs of Mamba-3 from a zero state, as sums over all writes. Angles are not reduced.
MatrixXd sums_of_ranks(const laws::AnySequences<double>& all, Index ranks, const MatrixXd& key_bias,
                       const MatrixXd& query_bias, double skip) {
  const auto& in = all.inputs;
  const MatrixXd &key = in["key"], &value = in["value"], &a = in["angles"],
                 &query = all.queries["query"], &gate = all.queries["gate"],
                 &read = all.queries["value"];
  const Index steps = in["decay"].cols();
  MatrixXd angle(a.rows(), steps), y = skip * read;
  for (Index t = 0; t < steps; ++t) {
    angle.col(t) = std::numbers::pi * in["step"](t) * a.col(t).array().tanh();
    if (t > 0) angle.col(t) += angle.col(t - 1);
  }
  for (Index c = 0; c < y.cols(); ++c) {
    const Index t = c / ranks;
    const VectorXd q = turned(query.col(c) + query_bias.col(c % ranks), angle.col(t));
    double decay = 1;  // α_{i+1} ⋯ α_t
    for (Index i = t; i >= 0; --i) {
      double weight = in["share"](i) * in["step"](i);
      if (i < t) weight += (1 - in["share"](i + 1)) * in["step"](i + 1);
      for (Index r = 0; r < ranks; ++r) {
        const Index w = i * ranks + r;
        const VectorXd k = turned(key.col(w) + key_bias.col(r), angle.col(i));
        y.col(c) += decay * weight * k.dot(q) * value.col(w);
      }
      decay *= in["decay"](i);
    }
  }
  return y.array() * gate.array() / (1 + (-gate.array()).exp());
}

fw::AnyMemory<double> mimo(Index dk, Index dv, Index ranks) {
  return make_memory<double>("Mamba3Mimo", {dk, dv, {{"ranks", double(ranks)}}});
}

TEST_CASE("Mamba-3 with several ranks is a sum over all writes", "[mamba3_mimo]") {
  for (const Index ranks : {1, 3, 17})
    for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 3}, {3, 1}, {17, 3}, {4, 17}}) {
      CAPTURE(ranks, dk, dv);
      const auto m = mimo(dk, dv, ranks);
      auto all = random_outputs(m, 41, 8);
      State state = m.initial_state();
      const MatrixXd key_bias = MatrixXd::Constant(dk, ranks, 0.3),
                     query_bias = MatrixXd::Constant(dk, ranks, -0.2);
      leaf(state, "slow.key_bias") = key_bias;
      leaf(state, "slow.query_bias") = query_bias;
      leaf(state, "slow.skip")(0) = 0.7;
      State by_steps = state;
      const MatrixXd expected = sums_of_ranks(all, ranks, key_bias, query_bias, 0.7);
      fw::testing::scan(m, state, all);
      CHECK(largest_entry(all.outputs["output"] - expected) <= 1e-13 * expected.norm());
      for (Index t = 0; t < 41; ++t)
        m.step(by_steps, all.inputs.part(t, 1), all.queries.part(t, 1),
               all.outputs.part<double>(t, 1));
      CHECK(largest_entry(all.outputs["output"] - expected) <= 1e-13 * expected.norm());
    }
}
TEST_CASE("Mamba-3 with several ranks, of which there is one, is Mamba-3", "[mamba3_mimo]") {
  const auto one = make_memory<double>("Mamba3", {5, 4});
  const auto all = random_outputs(one, 100, 9);
  const auto& in = all.inputs;
  CHECK(output_difference(
            all, mimo(5, 4, 1),
            {in["key"], in["value"], in["decay"], in["step"], in["share"], in["angles"]}) <= 1e-14);
}
TEST_CASE("a rank of Mamba-3 without values writes nothing", "[mamba3_mimo]") {
  constexpr Index ranks = 3, steps = 30;
  const auto m = mimo(6, 5, ranks), one = mimo(6, 5, 1);
  auto all = random_outputs(m, steps, 10);
  auto single = random_outputs(one, steps, 10);
  for (const char* name : {"decay", "step", "share", "angles"})
    single.inputs[name] = all.inputs[name];
  for (Index c = 0; c < ranks * steps; ++c)
    if (c % ranks != 1) all.inputs["value"].col(c).setZero();
  for (Index t = 0; t < steps; ++t) {
    single.inputs["key"].col(t) = all.inputs["key"].col(ranks * t + 1);
    single.inputs["value"].col(t) = all.inputs["value"].col(ranks * t + 1);
  }
  const State state = scan(m, all), expected = scan(one, single);
  CHECK(largest_entry(leaf(state, "W") - leaf(expected, "W")) <= 1e-14);
}
TEST_CASE("Mamba-3 with several ranks refuses wrong numbers of them", "[mamba3_mimo]") {
  CHECK_THROWS_WITH(mimo(4, 4, 0), "Mamba3Mimo: the number of ranks is 0, expected at least 1");
  CHECK_THROWS_WITH(make_memory<float>("Mamba3Mimo", {4, 4, {{"angles", 3}}}),
                    "Mamba3Mimo: the number of angles is 3, expected 0 to 2");
  CHECK_THROWS_WITH((fw::Mamba3Mimo<double, 4, 4, 2>({}, 3)),
                    "Mamba3Mimo: the number of ranks is 3, expected 2");
  const auto m = mimo(2, 1, 2);
  auto state = m.initial_state();
  const MatrixXd k = MatrixXd::Ones(2, 2), three = MatrixXd::Ones(2, 3), v = MatrixXd::Ones(1, 2);
  CHECK_THROWS_WITH(m.write(state, {three, v, 1., 1., 1., 1.}),
                    Catch::Matchers::ContainsSubstring("key"));
  CHECK_THROWS_WITH(m.checked_write(state, {k, v, 1., 1., 1.5, 1.}),
                    Catch::Matchers::ContainsSubstring("share is 1.5"));
  CHECK(state == m.initial_state());
  CHECK_NOTHROW(m.checked_write(state, {k, v, 1., 1., 1., 1.}));
}

TEST_CASE("log-linear attention with equal weights is gated linear attention",
          "[log_linear_attention]") {
  for (const Index levels : {1, 3, 9}) {
    const auto m = make_memory<double>("LogLinearAttention", {4, 5, {{"levels", double(levels)}}});
    auto all = random_outputs(m, 40, 3);
    all.queries["scales"].setOnes();
    scan(m, all);
    const MatrixXd expected = outputs_of(make_memory<double>("SimpleGatedLinearAttention", {4, 5}),
                                         all.inputs.matrices, {all.queries["query"]});
    CHECK(largest_entry(all.outputs["output"] - expected) <= 1e-14);
  }
}

TEST_CASE("levels are those of the binary cut; the last one keeps older tokens",
          "[log_linear_attention]") {
  constexpr Index levels = 4;
  const auto all = random_outputs(
      make_memory<double>("LogLinearAttention", {4, 5, {{"levels", levels}}}), 40, 3);
  const MatrixXd &key = all.inputs["key"], &value = all.inputs["value"],
                 &query = all.queries["query"];
  for (Index t = 0; t < 40; ++t) {
    VectorXd expected = VectorXd::Zero(5);
    double decay = 1;
    for (Index i = t; i >= 0; --i) {
      const auto difference = static_cast<unsigned>(t ^ i);
      const Index level = std::min<Index>(std::bit_width(difference), levels - 1);
      expected +=
          all.queries["scales"](level, t) * decay * key.col(i).dot(query.col(t)) * value.col(i);
      decay *= all.inputs["decay"](i);
    }
    CHECK(largest_entry(all.outputs["output"].col(t) - expected) <= 1e-14);
  }
}

}  // namespace
