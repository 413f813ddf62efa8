#include <fastweights/continuous/basis.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <fastweights/memories/recurrent/delta_lstm.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>
#include <fastweights/memories/recurrent/self_referential_matrix.hpp>
#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/fast_weight_memory.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "memories/checked_cases.hpp"

/// \file
/// What checked steps and scans refuse beside bad numbers, and what they accept.

using namespace checked_cases;

TEST_CASE("checked scan and step: the ranges of roles", "[checked]") {
  Case gated(fw::GatedDeltaRule<float>({5, 3}));
  refuses(gated, gated.inputs.decay, 0, 4, 2, "decay is 2, expected 0 to 1");
  refuses(gated, gated.inputs.decay, 0, 8, -1, "decay is -1, expected 0 to 1");
  refuses(gated, gated.inputs.beta, 0, 0, -0.5, "beta is -0.5, expected 0 to 2");
  refuses(gated, gated.inputs.beta, 0, 3, 2.5, "beta is 2.5, expected 0 to 2");
  Case kimi(Kimi<double>({5, 3}));
  refuses(kimi, kimi.inputs.decay, 3, 4, 1.0000001, "decay[3] is 1.0000001, expected 0 to 1");
  Case rows(RowDelta<float>({5, 3}));
  refuses(rows, rows.inputs.beta, 1, 4, 3, "beta[1] is 3, expected 0 to 2");
  Case lstm(fw::DeltaLstm<float>({5, 3}));
  refuses(lstm, lstm.inputs.key, 2, 3 * 4 + 1, not_a_number, "key(2, 1) is nan, expected a finite");
  refuses(lstm, lstm.inputs.recurrent_key, 2, 4, -0.5, "recurrent_key(2, 1) is -0.5");
  Case self(fw::SelfReferentialMatrix<double>({5, 3}));
  refuses(self, self.inputs.input, 2, 4, 0.75, "the sum of input is ");
  for (const float ends : {0.0f, -0.0f, 1.0f}) {
    gated.inputs.decay.setConstant(ends);
    gated.inputs.beta.setConstant(2 * ends);
    gated.scan();
  }
}

TEST_CASE("checked scan and step: keys that make a delta rule unstable", "[checked]") {
  const std::string text = "beta times the squared norm of key is ";
  Case delta(fw::DeltaRule<float>({5, 3}));
  refuses(delta, delta.inputs.key, 2, 5, 10, text);
  Case rows(RowDelta<double>({5, 3}));
  refuses(rows, rows.inputs.key, 2, 5, 10, text);
  Case gated(fw::GatedDeltaRule<float, 5, 3>{});
  refuses(gated, gated.inputs.key, 2, 5, 10, text);
  Case deferred(fw::Deferred(fw::GatedDeltaRule<float>({5, 3})));
  refuses(deferred, deferred.inputs.key, 2, 5, 10, text);
  Case rnn(fw::DeltaRnn<double>({5, 3}));
  refuses(rnn, rnn.inputs.key, 2, 5, 10, text);
  Case lstm(fw::DeltaLstm<double>({5, 3}));
  refuses(lstm, lstm.inputs.key, 2, 5, 10, text);
  using Mapped = fw::FeatureMapped<fw::DeltaRule<float>, fw::Dpfp<1>>;
  Case mapped(Mapped(fw::DeltaRule<float>({4, 3}), 2));
  refuses(mapped, mapped.inputs.key, 1, 5, 10, text);
  mapped.inputs.key(0, 5) = 1e15f;
  refuses(mapped, mapped.inputs.key, 1, 5, 1e15, "the norm of a mapped key is ");
  Case projected(fw::FastWeightMemory<float>({5, 3}));
  refuses(projected, projected.inputs.key, 2, 5, 1e14, "beta times the norms of key and value");
  projected.inputs.key(2, 5) = 10;  // any other length
  projected.scan();

  // Rounding of a normalised key is no violation.
  for (const Index d : {1, 3, 17, 64, 1000}) {
    Case unit(fw::DeltaRule<float>({d, 3}));
    unit.inputs.key.setRandom();
    for (Index t = 0; t < unit.steps; ++t) unit.inputs.key.col(t).normalize();
    unit.inputs.beta.setConstant(2);
    unit.scan();
    for (Index t = 0; t < unit.steps; ++t) unit.step(t);
    CHECK(fw::all_finite(unit.state));
  }
}

TEST_CASE("checked scan and step: the results are those of scan and step", "[checked]") {
  Case c(fw::GatedDeltaRule<double>({5, 3}));
  Case same(fw::GatedDeltaRule<double>({5, 3}));
  c.scan();
  fw::scan(same.memory, same.state,
           {same.inputs.key, same.inputs.value, same.inputs.beta, same.inputs.decay},
           {same.queries.query}, {same.outputs.output});
  CHECK(bytes_of(c.state_leaves) == bytes_of(same.state_leaves));
  CHECK(bytes_of(c.output_leaves) == bytes_of(same.output_leaves));
  c.step(3);
  fw::step(
      same.memory, same.state,
      {same.inputs.key.col(3), same.inputs.value.col(3), same.inputs.beta[3], same.inputs.decay[3]},
      {same.queries.query.col(3)}, {same.outputs.output.col(3)});
  CHECK(bytes_of(c.state_leaves) == bytes_of(same.state_leaves));
  CHECK(bytes_of(c.output_leaves) == bytes_of(same.output_leaves));
  // Sizes are checked first.
  CHECK_THROWS_WITH(
      fw::checked_scan(c.memory, c.state,
                       {c.inputs.value, c.inputs.value, c.inputs.beta, c.inputs.decay},
                       {c.queries.query}, {c.outputs.output}),
      "GatedDeltaRule: key has 3 rows, the memory expects 5");
}

TEST_CASE("checked write: chunks and draws", "[checked]") {
  using Basis = fw::RectangularBasis<float>;
  using Density = fw::GibbsDensity<float>;
  const Basis basis(4);
  const fw::ContinuousMemory<float, Density, Basis, fw::StickySampling> memory(
      {.d = 3, .chunk = 4, .samples = 8}, basis, Density(basis));
  auto state = fw::initial_state(memory);
  Eigen::MatrixXf signal = Eigen::MatrixXf::Ones(3, 4), draws = Eigen::MatrixXf::Zero(1, 8);
  fw::checked_write(memory, state, {signal, draws});
  const std::string before = bytes_of(leaves_of(state));
  draws(5) = 1;
  CHECK_THROWS_WITH(fw::checked_write(memory, state, {signal, draws}),
                    "ContinuousMemory: draws[5] is 1, expected at least 0 and below 1");
  draws(5) = std::nextafter(1.0f, 0.0f);
  fw::checked_write(memory, state, {signal, draws});
  state = fw::initial_state(memory);
  signal(2, 1) = std::nanf("");
  const auto empty = bytes_of(leaves_of(state));
  CHECK_THROWS_WITH(fw::checked_write(memory, state, {signal, draws}),
                    ContainsSubstring("ContinuousMemory: signal(2, 1) is nan, expected a finite"));
  CHECK(bytes_of(leaves_of(state)) == empty);
  CHECK(before != empty);
  const Eigen::MatrixXf queries = Eigen::MatrixXf::Ones(3, 4);
  Eigen::MatrixXf outputs(3, 4);
  CHECK_THROWS_WITH(fw::checked_scan(memory, state, {signal, draws}, {queries}, {outputs}),
                    ContainsSubstring("ContinuousMemory: token 1: signal[2] is nan"));
}

TEST_CASE("checked step: entries of the largest size keep the state finite", "[checked]") {
  const float large = 0x1p50f;
  const fw::LinearAttention<float> sum({.key_size = 3});
  auto state = fw::initial_state(sum);
  const Eigen::Vector3f x = Eigen::Vector3f::Constant(large);
  Eigen::VectorXf y(3);
  for (int t = 0; t < 10000; ++t) fw::checked_step(sum, state, {x, x}, {x}, {y});
  CHECK(fw::all_finite(state));
  const fw::FastWeightMemory<float> projected({.key_size = 3});
  auto unit = fw::initial_state(projected);
  const Eigen::Vector3f key = Eigen::Vector3f::Constant(1e3f);
  for (int t = 0; t < 100; ++t) fw::checked_step(projected, unit, {key, x, 1.0f}, {key}, {y});
  CHECK(unit.W.norm() == Catch::Approx(1));
}

TEST_CASE("checked step: the limit of TitansMemory for constant inputs", "[checked]") {
  const fw::TitansMemory<double> memory({.key_size = 1});
  const Eigen::VectorXd one = Eigen::VectorXd::Ones(1), key = one * 2;  // of squared norm 4
  Eigen::VectorXd y(1);
  for (const double momentum : {0.0, 0.5, 1.0})
    for (const double forget : {0.0, 0.5, 1.0}) {
      const double limit = (1 - forget / 2) * (1 + momentum) / 4;
      auto state = fw::initial_state(memory), grown = state;
      for (int t = 0; t < 2000; ++t) {
        fw::checked_step(memory, state, {key, one, limit * 0.99, momentum, forget}, {one}, {y});
        fw::step(memory, grown, {key, one, limit * 1.01, momentum, forget}, {one}, {y});
      }
      CHECK(state.W.norm() < 1e3);
      CHECK(grown.W.norm() > 1e3);
      CHECK_THROWS_WITH(
          fw::checked_step(memory, state, {key, one, limit * 1.01, momentum, forget}, {one}, {y}),
          ContainsSubstring("TitansMemory: 2 rate / ((1 - forget / 2) (1 + momentum))"));
    }
}

TEST_CASE("checked step: every mapped key must be finite", "[checked]") {
  const fw::FeatureMapped memory(fw::Comba<float>({.key_size = 4}), 2, fw::Dpfp<1>());
  auto state = fw::initial_state(memory);
  const Eigen::Vector2f small = Eigen::Vector2f::Ones(), large = small * 9e14f;
  Eigen::Vector4f y = Eigen::Vector4f::Zero();
  const Eigen::Vector4f value = Eigen::Vector4f::Ones();
  CHECK_NOTHROW(fw::checked_step(memory, state, {small, value, small, 1.0f, 1.0f}, {small}, {y}));
  CHECK_THROWS_WITH(
      fw::checked_step(memory, state, {small, value, large, 1.0f, 1.0f}, {small}, {y}),
      ContainsSubstring("the norm of a mapped key is "));
}

TEST_CASE("HebbianMemory: rates that are not finite are refused, unstable ones by checked steps",
          "[checked]") {
  using Hebbian = fw::HebbianMemory<float>;
  CHECK_THROWS_WITH(Hebbian({.key_size = 3}, {std::nanf(""), 1}),
                    "HebbianMemory: decay is nan, expected a finite number");
  CHECK_THROWS_WITH(Hebbian({.key_size = 3}, {1, std::nanf("")}),
                    "HebbianMemory: rate is nan, expected a finite number");
  for (const float decay : {2.0f, -0.5f}) {
    const Hebbian memory({.key_size = 3}, {decay, 1});
    auto state = fw::initial_state(memory);
    const Eigen::Vector3f x = Eigen::Vector3f::Ones();
    CHECK_THROWS_WITH(fw::checked_write(memory, state, {x, x}),
                      ContainsSubstring("HebbianMemory: the constant decay is ") &&
                          ContainsSubstring(", expected 0 to 1"));
    CHECK(state.W.isZero(0));
  }
}
