#include <bit>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/log_linear_attention.hpp>

#include "support/laws.hpp"

namespace {

using Eigen::VectorXd;
using fw::Index;
using Memory = fw::LogLinearAttention<double>;
using Gated = fw::GatedLinearAttention<double, -1, -1, fw::KeyValueDecay>;

TEST_CASE("log-linear attention obeys the laws", "[laws][log_linear_attention]") {
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 1}, {3, 17}, {65, 4}, {64, 64}}) {
    INFO("d_v = " << dv << ", d_k = " << dk);
    laws::every_memory(Memory({dk, dv}, 4));
  }
  for (const Index levels : {1, 2, 6}) laws::gradients_are_exact(Memory({5, 4}, levels), 19, false);
  laws::gradients_are_exact(Memory({1, 3}, 3), 6, false);
  laws::float_follows_double(Memory({17, 3}, 5), false);
  laws::takes_autodiff(Memory({4, 3}, 3), false);
  laws::fixed_is_dynamic(fw::LogLinearAttention<double, 4, 3>({}, 3), Memory({4, 3}, 3), false);
}

fw::testing::Sequences<Memory> random_sequences(const Memory& m) {
  fw::Random random(3);
  return fw::testing::random_sequences(m, 40, random);
}

TEST_CASE("log-linear attention with equal weights is gated linear attention",
          "[log_linear_attention]") {
  for (const Index levels : {1, 3, 9}) {
    const Memory m({4, 5}, levels);
    auto all = random_sequences(m);
    all.queries.scales.setOnes();
    auto state = fw::initial_state(m);
    laws::scan(m, state, all);
    const Gated gated({4, 5});
    auto gated_state = fw::initial_state(gated);
    Eigen::MatrixXd expected(5, 40);
    fw::scan(gated, gated_state, {all.inputs.key, all.inputs.value, all.inputs.decay},
             {all.queries.query}, {expected});
    CHECK(largest_entry(all.outputs.output - expected) <= 1e-14);
  }
}

TEST_CASE("levels are those of the binary cut; the last one keeps older tokens",
          "[log_linear_attention]") {
  constexpr Index levels = 4;
  const Memory m({4, 5}, levels);
  auto all = random_sequences(m);
  auto state = fw::initial_state(m);
  laws::scan(m, state, all);
  const auto& in = all.inputs;
  for (Index t = 0; t < 40; ++t) {
    VectorXd expected = VectorXd::Zero(5);
    double decay = 1;
    for (Index i = t; i >= 0; --i) {
      const auto difference = static_cast<unsigned>(t ^ i);
      const Index level = std::min<Index>(std::bit_width(difference), levels - 1);
      expected += all.queries.scales(level, t) * decay *
                  in.key.col(i).dot(all.queries.query.col(t)) * in.value.col(i);
      decay *= in.decay[i];
    }
    CHECK(largest_entry(all.outputs.output.col(t) - expected) <= 1e-14);
  }
}

}  // namespace
