#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>

#include "support/laws.hpp"

namespace {

using fw::Index;
using Gated = fw::GatedDeltaRule<double>;

template <class M> void obeys(std::initializer_list<std::pair<Index, Index>> sizes) {
  for (const auto& [dk, dv] : sizes) {
    INFO("d_v = " << dv << ", d_k = " << dk);
    laws::all(M({dk, dv}));
  }
  laws::gradients_are_exact(M({5, 4}), 17, false);
  laws::gradients_are_exact(M({1, 3}), 6, false);
}

TEST_CASE("Comba obeys the laws", "[laws][comba]") {
  obeys<fw::Comba<double>>({{1, 1}, {3, 17}, {65, 4}, {64, 64}});
}
TEST_CASE("the low-rank rule obeys the laws", "[laws][low_rank_rule]") {
  obeys<fw::LowRankRule<double>>({{1, 1}, {3, 17}, {65, 4}, {64, 64}});
}
TEST_CASE("the gated DeltaProduct obeys the laws", "[laws][gated_delta_product]") {
  obeys<fw::GatedDeltaProduct<double>>({{1, 1}, {3, 17}, {65, 4}, {64, 64}});
}

struct Example {
  const Gated gated{{.key_size = 4, .value_size = 5}};
  fw::testing::Sequences<Gated> all;
  Example() : all(make()) {
    auto state = fw::initial_state(gated);
    laws::scan(gated, state, all);
  }
  fw::testing::Sequences<Gated> make() const {
    fw::Random random(3);
    return fw::testing::random_sequences(gated, 20, random);
  }
};

TEST_CASE("Comba that looks up the decayed key is the gated delta rule", "[comba]") {
  const Example e;
  const auto& in = e.all.inputs;
  const Eigen::MatrixXd lookup = in.key * in.decay.asDiagonal();
  CHECK(laws::output_difference(e.all, fw::Comba<double>({4, 5}),
                                {in.key, in.value, lookup, in.beta, in.decay}) <= 1e-14);
}
TEST_CASE("the low-rank rule contains the gated delta rule", "[low_rank_rule]") {
  const Example e;
  const auto& in = e.all.inputs;
  const Eigen::MatrixXd removal = -in.key * (in.decay.cwiseProduct(in.beta)).asDiagonal(),
                        value = in.value * in.beta.asDiagonal(), decay = in.decay.replicate(4, 1);
  CHECK(laws::output_difference(e.all, fw::LowRankRule<double>({4, 5}),
                                {in.key, value, removal, in.key, decay}) <= 1e-14);
}
TEST_CASE("the low-rank rule that removes nothing is gated linear attention", "[low_rank_rule]") {
  const fw::GatedLinearAttention<double, -1, -1, fw::KeyValueVectorDecay> attention({4, 5});
  fw::Random random(5);
  auto all = fw::testing::random_sequences(attention, 20, random);
  auto state = fw::initial_state(attention);
  laws::scan(attention, state, all);
  const auto& in = all.inputs;
  const Eigen::MatrixXd zero = Eigen::MatrixXd::Zero(4, 20);
  CHECK(laws::output_difference(all, fw::LowRankRule<double>({4, 5}),
                                {in.key, in.value, zero, in.key, in.decay}) <= 1e-14);
}
TEST_CASE("the DeltaProduct of one write is the gated delta rule", "[gated_delta_product]") {
  const Example e;
  const auto& in = e.all.inputs;
  CHECK(laws::output_difference(e.all, fw::GatedDeltaProduct<double, 1>({4, 5}),
                                {in.key, in.value, in.beta, in.decay}) <= 1e-14);
}

}  // namespace
