#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/feature_maps/taylor.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/mamba3.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>
#include <fastweights/memories/rules/selective_scan.hpp>

#include "support/laws.hpp"

namespace {

using fw::Dynamic;
using fw::Index;
using fw::KeyValueDecay;
using fw::KeyValueVectorDecay;
using Scan = fw::SelectiveScan<double>;
using Normalised = fw::NormalisedGatedAttention<double>;
using fw::Mamba3;

const std::initializer_list<std::pair<Index, Index>> sizes = {{1, 1}, {3, 17}, {65, 4}, {64, 64}};

TEST_CASE("the selective scan obeys the laws", "[laws][selective_scan]") {
  for (const auto& [dk, dv] : sizes) laws::every_memory(Scan({dk, dv}));
  laws::gradients_are_exact(Scan({5, 4}), 17, false);
  laws::gradients_are_exact(Scan({1, 3}), 6, false);
  laws::float_follows_double(Scan({17, 3}), false);
  laws::fixed_is_dynamic(fw::SelectiveScan<double, 3, 4>(), Scan({3, 4}), false);
}
TEST_CASE("Mamba-3 obeys the laws", "[laws][mamba3]") {
  for (const auto& [dk, dv] : sizes) laws::every_memory(Mamba3<double>({dk, dv}));
  laws::every_memory(Mamba3<double>({7, 4}, 2));
  laws::gradients_are_exact(Mamba3<double>({5, 4}), 17, false);
  laws::gradients_are_exact(Mamba3<double>({6, 4}, 1), 6, false);
  laws::gradients_are_exact(Mamba3<double>({1, 3}), 6, false);
  laws::float_follows_double(Mamba3<double>({17, 3}), false);
  laws::fixed_is_dynamic(Mamba3<double, 3, 4>(), Mamba3<double>({3, 4}), false);
}
TEST_CASE("normalised gated attention obeys the laws", "[laws][normalised_gated_attention]") {
  using ByRow = fw::NormalisedGatedAttention<double, Dynamic, Dynamic, KeyValueVectorDecay>;
  for (const auto& [dk, dv] : sizes) laws::every_memory(Normalised({dk, dv}), true);
  laws::every_memory(ByRow({3, 17}), true);
  laws::gradients_are_exact(Normalised({5, 4}), 17, true);
  laws::gradients_are_exact(ByRow({1, 3}), 6, true);
  laws::gradients_are_exact(ByRow({5, 4}), 6, true);
  laws::float_follows_double(Normalised({17, 3}), true);
  using Power = fw::FeatureMapped<Normalised, fw::SymmetricPower<4>>;
  laws::gradients_are_exact(Power(Normalised({15, 4}), 3), 6, true);
}

template <class M> auto random_run(const M& m, std::uint64_t seed, bool positive = false) {
  fw::Random random(seed);
  auto all = fw::testing::random_sequences(m, 20, random, positive);
  auto state = fw::initial_state(m);
  laws::scan(m, state, all);
  return std::pair(all, state);
}

TEST_CASE("normalised gated attention without decay is normalised linear attention",
          "[normalised_gated_attention]") {
  using Normaliser = fw::AttentionNormaliser<double>;
  using Attention = fw::LinearAttention<double, Dynamic, Dynamic, Normaliser>;
  const auto [all, state] = random_run(Attention({4, 5}, Normaliser{1e-6}), 3, true);
  const Eigen::RowVectorXd ones = Eigen::RowVectorXd::Ones(20);
  CHECK(laws::output_difference(all, Normalised({4, 5}),
                                {all.inputs.key, all.inputs.value, ones}) <= 1e-14);
}
TEST_CASE("normalised gated attention answers a mean of equal values",
          "[normalised_gated_attention]") {
  const auto all = random_run(Normalised({4, 1}), 4, true).first;
  Eigen::MatrixXd y = Eigen::RowVectorXd::Ones(20);
  const Eigen::RowVectorXd ones = y;
  auto state = fw::initial_state(Normalised({4, 1}));
  fw::scan(Normalised({4, 1}), state, {all.inputs.key, ones, all.inputs.decay}, {all.queries.query},
           {y});
  CHECK(largest_entry(y - ones) <= 1e-4);
}

// With equal decays in a row's entries, A_ij = a, the scan of one value row is gated attention.
TEST_CASE("the selective scan with equal decays is gated linear attention", "[selective_scan]") {
  using Attention = fw::GatedLinearAttention<double, Dynamic, Dynamic, KeyValueDecay>;
  const auto [all, final_state] = random_run(Attention({4, 1}), 5);
  const Scan m({4, 1});
  auto state = fw::initial_state(m);
  state.slow.A.setConstant(-0.7);
  const Eigen::RowVectorXd step = -all.inputs.decay.array().log() / 0.7,
                           before = (step.array().exp() - 1).log(),
                           value = all.inputs.value.array() / step.array(),
                           zero = Eigen::RowVectorXd::Zero(20);
  Eigen::MatrixXd y(1, 20);
  fw::scan(m, state, {all.inputs.key, value, before}, {all.queries.query, value, zero}, {y});
  CHECK(largest_entry(state.W - final_state.W) <= 1e-13);
  CHECK(y.isZero(0));  // silu(0)
}
TEST_CASE("the selective scan stays finite for steps of any size", "[selective_scan]") {
  const fw::SelectiveScan<float> m({3, 2});
  for (const float size : {-1e15F, -100.F, 0.F, 100.F, 1e15F}) {
    auto state = fw::initial_state(m);
    const Eigen::Vector3f k = Eigen::Vector3f::Ones();
    const Eigen::Vector2f v = Eigen::Vector2f::Ones(), step = Eigen::Vector2f::Constant(size);
    Eigen::Vector2f y;
    for (int t = 0; t < 5; ++t) fw::step(m, state, {k, v, step}, {k, v, step}, {y});
    CHECK(state.W.allFinite());
    CHECK(y.allFinite());
  }
}

TEST_CASE("Mamba-3 that turns no key and writes one token is gated linear attention", "[mamba3]") {
  using Attention = fw::GatedLinearAttention<double, Dynamic, Dynamic, KeyValueDecay>;
  const auto [all, final_state] = random_run(Attention({4, 5}), 6);
  const Mamba3<double> m({4, 5});
  const auto& in = all.inputs;
  const Eigen::RowVectorXd ones = Eigen::RowVectorXd::Ones(20);
  const Eigen::MatrixXd zero = Eigen::MatrixXd::Zero(2, 20),
                        open = Eigen::MatrixXd::Constant(5, 20, 1e3);
  auto state = fw::initial_state(m);
  Eigen::MatrixXd y(5, 20);
  fw::scan(m, state, {in.key, in.value, in.decay, ones, ones, zero},
           {all.queries.query, in.value, open}, {y});
  CHECK(largest_entry(state.W - final_state.W) <= 1e-14);
  CHECK(largest_entry(y / 1e3 - all.outputs.output) <= 1e-14);
}
// A product of a key and a query depends on the difference of their angles alone.
TEST_CASE("Mamba-3 with equal angles everywhere reads as without them", "[mamba3]") {
  const Mamba3<double> m({4, 5});
  auto all = random_run(m, 7).first;
  all.inputs.angles.setZero();
  Eigen::MatrixXd y(5, 20), turned(5, 20);
  const auto scan = [&](double angle, Eigen::MatrixXd& to) {
    auto state = fw::initial_state(m);
    state.angle.setConstant(angle);
    const auto& in = all.inputs;
    const auto& q = all.queries;
    fw::scan(m, state, {in.key, in.value, in.decay, in.step, in.share, in.angles},
             {q.query, q.value, q.gate}, {to});
  };
  scan(0, y);
  scan(1.3, turned);
  CHECK(largest_entry(y - turned) <= 1e-14);
}
TEST_CASE("angles of Mamba-3 stay within a circle", "[mamba3]") {
  const Mamba3<float, 2, 1> m;
  auto state = fw::initial_state(m);
  const Eigen::Vector2f k(1, 0);
  const Eigen::Matrix<float, 1, 1> v(1.F);
  for (const float a : {-1e-30F, 20.F, -20.F, 1e-9F, -1e-9F}) {
    const Eigen::Matrix<float, 1, 1> angle(a);
    for (int t = 0; t < 100; ++t) {
      fw::write(m, state, {k, v, 0.9F, 1.9F, 0.5F, angle});
      CHECK((state.angle[0] >= 0 && state.angle[0] < 6.2831855F));
    }
  }
}
TEST_CASE("Mamba-3 names wrong sizes and shares", "[mamba3]") {
  CHECK_THROWS_WITH(Mamba3<float>({4, 4}, 3), "Mamba3: the number of angles is 3, expected 0 to 2");
  const Mamba3<double> m({2, 1});
  const Eigen::Vector2d k(1, 0);
  const Eigen::Matrix<double, 1, 1> one(1.);
  CHECK_FALSE(m.violation({k, one, 1., 1., 1., one}));
  CHECK(m.violation({k, one, 1., 1., 1.5, one}));
}

}  // namespace
