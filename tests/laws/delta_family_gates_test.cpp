#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/gated_oja_rule.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/preconditioned_delta_rule.hpp>
#include <fastweights/memories/rules/rwkv6.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "support/laws.hpp"

namespace {

using fw::Dynamic;
using fw::Index;

// The laws that need no other scalar than double, and the gradients.
template <class M> void obeys(std::initializer_list<std::pair<Index, Index>> sizes) {
  for (const auto& [dk, dv] : sizes) {
    INFO("d_v = " << dv << ", d_k = " << dk);
    laws::every_memory(M({dk, dv}));
  }
  laws::gradients_are_exact(M({5, 4}), 17, false);
  laws::gradients_are_exact(M({1, 3}), 6, false);
}

TEST_CASE("the second gated delta rule obeys the laws", "[laws][gated_delta_rule_2]") {
  obeys<fw::GatedDeltaRule2<double>>({{1, 1}, {3, 17}, {65, 4}});
}
TEST_CASE("the gated Oja rule obeys the laws", "[laws][gated_oja_rule]") {
  obeys<fw::GatedOjaRule<double>>({{1, 1}, {3, 4}, {65, 2}});
}
TEST_CASE("Longhorn obeys the laws", "[laws][longhorn]") {
  obeys<fw::Longhorn<double>>({{1, 1}, {3, 17}, {65, 4}});
  obeys<fw::Longhorn<double, Dynamic, Dynamic, fw::LonghornForm::exact>>({{3, 17}});
}
TEST_CASE("the preconditioned delta rule obeys the laws", "[laws][preconditioned_delta_rule]") {
  obeys<fw::PreconditionedDeltaRule<double>>({{1, 1}, {3, 17}, {65, 4}});
}
TEST_CASE("RWKV-6 obeys the laws", "[laws][rwkv6]") {
  obeys<fw::Rwkv6<double>>({{1, 1}, {3, 17}, {65, 4}});
}
TEST_CASE("the memory of Titans obeys the laws", "[laws][titans]") {
  obeys<fw::TitansMemory<double>>({{1, 1}, {3, 17}, {65, 4}});
}

using Kimi = fw::GatedDeltaRule<double, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>;

TEST_CASE("the second gated delta rule with one strength is Kimi delta attention",
          "[gated_delta_rule_2]") {
  const Kimi kimi({4, 5});
  fw::Random random(3);
  auto all = fw::testing::random_sequences(kimi, 20, random);
  auto state = fw::initial_state(kimi);
  laws::scan(kimi, state, all);
  const auto& in = all.inputs;
  const Eigen::MatrixXd erase = in.beta.replicate(4, 1), write = in.beta.replicate(5, 1);
  CHECK(laws::output_difference(all, fw::GatedDeltaRule2<double>({4, 5}),
                                {in.key, in.value, in.decay, erase, write}) <= 1e-14);
}

TEST_CASE("the gated Oja rule is the transpose of Kimi delta attention", "[gated_oja_rule]") {
  const fw::GatedOjaRule<double> oja({4, 5});
  const Kimi kimi({5, 4});
  fw::Random random(4);
  auto all = fw::testing::random_sequences(oja, 20, random);
  auto state = fw::initial_state(oja);
  auto transposed = fw::initial_state(kimi);
  laws::scan(oja, state, all);
  const auto& in = all.inputs;
  Eigen::MatrixXd outputs(4, 20);
  fw::scan(kimi, transposed, {in.value, in.key, in.beta, in.decay}, {in.value}, {outputs});
  CHECK(largest_entry(state.W - transposed.W.transpose()) <= 1e-14);
}

TEST_CASE("the memory of Titans without momentum is the delta rule with twice the rate",
          "[titans]") {
  const fw::DeltaRule<double> delta({4, 5});
  fw::Random random(5);
  auto all = fw::testing::random_sequences(delta, 20, random);
  auto state = fw::initial_state(delta);
  laws::scan(delta, state, all);
  const auto& in = all.inputs;
  const Eigen::RowVectorXd rate = in.beta / 2, zero = Eigen::RowVectorXd::Zero(20);
  CHECK(laws::output_difference(all, fw::TitansMemory<double>({4, 5}),
                                {in.key, in.value, rate, zero, zero}) <= 1e-14);
}

}  // namespace
