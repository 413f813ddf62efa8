#include <cmath>
#include <fastweights/algorithms/checked.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/mesa_memory.hpp>

#include "support/checked_run.hpp"

/// \file
/// Tokens that checked calls of single memories refuse and accept. Those of all memories are in
/// laws/checked_tokens_test.cpp.

namespace {

using Catch::Matchers::ContainsSubstring;
using Eigen::MatrixXf;
using Eigen::VectorXd;
using Eigen::VectorXf;
using fw::AnyState;
using fw::Index;
using laws::CheckedRun;
using laws::subject;

bool is_finite(const laws::Values& values) {
  for (const double x : values.numbers)
    if (!std::isfinite(x)) return false;
  return true;
}

// ‖W‖, if W is all that a state has.
template <class S> double norm(const AnyState<S>& state) {
  const std::vector<double> numbers = laws::values_of(state).numbers;
  return Eigen::Map<const VectorXd>(numbers.data(), static_cast<Index>(numbers.size())).norm();
}

TEST_CASE("checked calls name the entry of a member", "[checked]") {
  CheckedRun<double> kimi(subject("KimiDeltaAttention", 5, 3));
  kimi.refuses({"decay", 3, 4}, 1.0000001, "decay[3] is 1.0000001, expected 0 to 1");
  CheckedRun<float> rows(subject("VectorDeltaRule", 5, 3));
  rows.refuses({"beta", 1, 4}, -3, "beta[1] is -3, expected 0 to 1e12");
  CheckedRun<float> lstm(subject("DeltaLstm", 5, 3));
  lstm.refuses({"key", 2, 3 * 4 + 1}, std::nan(""), "key(2, 1) is nan, expected a finite");
  lstm.refuses({"recurrent_key", 2, 4}, -0.5, "recurrent_key(2, 1) is -0.5");
}

template <class S> void refuses_long_keys(const char* name) {
  INFO(name);
  CheckedRun<S> run(subject(name, 5, 3));
  run.refuses({"key", 2, 5}, 10, "beta times the squared norm of key is ");
}

TEST_CASE("checked calls refuse keys that make a delta rule unstable", "[checked]") {
  for (const char* name :
       {"DeltaRule", "VectorDeltaRule", "GatedDeltaRule", "KimiDeltaAttention", "DeferredDeltaRule",
        "DeferredKimiDeltaAttention", "DeltaRnn", "DeltaLstm"}) {
    refuses_long_keys<float>(name);
    refuses_long_keys<double>(name);
  }
  CheckedRun<float> projected(subject("FastWeightMemory", 5, 3));
  projected.refuses({"key", 2, 5}, 1e14, "beta times the norms of key and value");
  projected.number({"key", 2, 5}) = 10;  // any other length
  CHECK_NOTHROW(projected.checked_scan());
}

TEST_CASE("checked calls accept a normalised key with its rounding, and a strength of 2",
          "[checked]") {
  for (const char* name : {"DeltaRule", "GatedDeltaRule", "KimiDeltaAttention"})
    for (const Index d : {1, 3, 17, 64, 1000}) {
      CheckedRun<float> run(subject(name, d, 3));
      run.all.inputs["key"].setRandom();
      run.all.inputs["key"].colwise().normalize();
      run.all.inputs["beta"].setConstant(2);
      run.checked_scan();
      for (Index t = 0; t < run.steps; ++t) run.checked_step(t);
      CHECK(is_finite(laws::values_of(run.state)));
    }
}

// An NLMS filter of a quiet signal: β = μ/‖k‖² is large, and the write is as stable as any.
TEST_CASE("checked calls accept a large strength for a short key", "[checked]") {
  const fw::DeltaRule<float, 8, 1> m;
  auto state = fw::initial_state(m), plain = state;
  const VectorXf k = 0.1f * VectorXf::Ones(8).normalized(), v = VectorXf::Ones(1);
  VectorXf y(1), expected(1);
  fw::checked_step(m, state, {k, v, 50.0f}, {k}, {y});  // β‖k‖² is 0.5
  fw::step(m, plain, {k, v, 50.0f}, {k}, {expected});
  CHECK(y == expected);
  CHECK(y[0] == Catch::Approx(0.5));
  const auto before = state.W;
  CHECK_THROWS_WITH(fw::checked_step(m, state, {k, v, 250.0f}, {k}, {y}),
                    ContainsSubstring("DeltaRule: beta times the squared norm of key is 2.5"));
  CHECK(state.W == before);
}

template <class S> void stays_finite(const char* name, double strength, double value) {
  INFO(name);
  CheckedRun<S> run(subject(name, 5, 3));
  const double length = 1 / std::sqrt(strength * 5);  // of an entry, for β‖k‖² = 1
  run.all.inputs["key"].setConstant(static_cast<S>(length));
  run.all.inputs["value"].setConstant(static_cast<S>(value));
  run.all.inputs["beta"].setConstant(static_cast<S>(strength));
  run.all.queries.matrices[0].setConstant(S(1));
  for (int i = 0; i < 1000; ++i) {
    run.all.inputs["key"] *= S(-1);
    run.checked_scan();
  }
  CHECK(is_finite(laws::values_of(run.state)));
  CHECK(is_finite(laws::values_of(run.all.outputs)));
}

TEST_CASE("the largest strengths with the largest values keep the state finite", "[checked]") {
  for (const char* name : {"DeltaRule", "VectorDeltaRule", "GatedDeltaRule", "DeferredDeltaRule"}) {
    stays_finite<float>(name, 1e12, 0x1p50);
    stays_finite<double>(name, 1e147, 0x1p500);
  }
}

// Four times one key: G has rank 1, and 1e-7 is less than 3 units of rounding of its entries. The
// answer to a query outside of the key's span was then not finite.
template <class Memory = fw::MesaMemory<float>> struct MesaRun {
  Memory memory;
  fw::StateOf<Memory> state = fw::initial_state(memory);
  MatrixXf keys = MatrixXf::Constant(3, 4, 0.5f), values = MatrixXf::Ones(3, 4),
           queries = MatrixXf::Zero(3, 4), outputs = MatrixXf::Ones(3, 4);
  VectorXf ones = VectorXf::Ones(4);

  MesaRun(float ridge, Memory m) : memory(std::move(m)) {
    state.slow.ridge.setConstant(ridge);
    queries.row(0).setOnes();
    queries(1, 3) = -1;
  }
  explicit MesaRun(float ridge) : MesaRun(ridge, Memory({.key_size = 3})) {}
  void scan() { fw::checked_scan(memory, state, {keys, values, ones, ones}, {queries}, {outputs}); }
  void step(Index t) {
    fw::checked_step(memory, state, {keys.col(t), values.col(t), ones[t], ones[t]},
                     {queries.col(t)}, {outputs.col(t)});
  }
};

TEST_CASE("checked calls refuse a ridge that is too small for the rank of the keys", "[checked]") {
  const char* const text = "the smallest pivot of G + diag(ridge) is ";
  MesaRun<> run(1e-7f);
  CHECK_THROWS_WITH(run.scan(), ContainsSubstring("MesaMemory: token 1: ") &&
                                    ContainsSubstring(text) &&
                                    ContainsSubstring("take a larger ridge"));
  CHECK(run.state.G.isZero(0));
  CHECK((run.outputs.array() == 1).all());
  run.step(0);
  const MatrixXf before = run.state.G;
  CHECK_THROWS_WITH(run.step(1), ContainsSubstring(text));
  CHECK_THROWS_WITH(
      fw::checked_write(run.memory, run.state, {run.keys.col(1), run.values.col(1), 1.0f, 1.0f}),
      ContainsSubstring(text));
  CHECK(run.state.G == before);
}

// ELU + 1 of 1/2 is 3/2, so the features have rank 1 as well, and G is 2.25, then 4.5.
TEST_CASE("checked calls refuse a small ridge behind a feature map", "[checked]") {
  using Mapped = fw::FeatureMapped<fw::MesaMemory<float>, fw::EluPlusOne>;
  static_assert(fw::StateCondition<Mapped>);
  MesaRun run(1.1e-6f, Mapped(fw::MesaMemory<float>({.key_size = 3}), 3));
  CHECK_THROWS_WITH(run.scan(), ContainsSubstring("token 1: ") &&
                                    ContainsSubstring("the smallest pivot of G + diag(ridge) is "));
  CHECK(run.state.G.isZero(0));
  CHECK((run.outputs.array() == 1).all());
  run.step(0);
  CHECK_THROWS_WITH(run.step(1), ContainsSubstring("take a larger ridge"));

  MesaRun large(1e-1f, Mapped(fw::MesaMemory<float>({.key_size = 3}), 3));
  CHECK_NOTHROW(large.scan());
  CHECK(large.outputs.allFinite());
}

TEST_CASE("checked calls accept a ridge that the rank of the keys allows", "[checked]") {
  MesaRun<> large(1e-3f), spanned(1e-12f);
  large.scan();
  CHECK(std::abs(large.outputs(0, 3)) <= 1e-3f);  // q is orthogonal to the key
  spanned.state.G = MatrixXf::Identity(3, 3);     // as after a key in each direction
  spanned.scan();
  // After one token: v (k·q) / (1 + ‖k‖²) = (1/2) / (1 + 3/4).
  CHECK(std::abs(spanned.outputs(0, 0) - 2.0f / 7) <= 1e-6f);
  CHECK(std::abs(spanned.outputs(0, 3)) <= 1e-6f);
  fw::MesaMemory<float, fw::Dynamic, fw::Dynamic, fw::ConjugateGradients> solver({.key_size = 3});
  auto state = fw::initial_state(solver);
  fw::checked_scan(solver, state, {large.keys, large.values, large.ones, large.ones},
                   {large.queries}, {large.outputs});
}

TEST_CASE("checked calls look at sizes first", "[checked]") {
  CheckedRun<double> run(subject("GatedDeltaRule", 5, 3));
  auto wrong = run.all.inputs;
  wrong["key"] = wrong["value"];
  CHECK_THROWS_WITH(run.memory.checked_scan(run.state, wrong.views(), run.all.queries.views(),
                                            run.all.outputs.views<double>()),
                    "GatedDeltaRule: key has 3 rows, the memory expects 5");
}

TEST_CASE("a read of a const state looks at sizes", "[checked]") {
  const fw::DeltaRule<double> m({.key_size = 3});
  const auto state = fw::initial_state(m);
  const Eigen::VectorXd query = Eigen::VectorXd::Ones(3), longer = Eigen::VectorXd::Ones(4);
  Eigen::VectorXd output(3), shorter(2);
  CHECK_NOTHROW(fw::read(m, state, {query}, {output}));
  CHECK_THROWS_WITH(fw::read(m, state, {longer}, {output}),
                    ContainsSubstring("query has 4 rows, the memory expects 3"));
  CHECK_THROWS_WITH(fw::read(m, state, {query}, {shorter}),
                    ContainsSubstring("output has 2 rows, the memory expects 3"));
}

TEST_CASE("check_tokens looks at the queries as well", "[checked]") {
  const fw::DeltaRule<float> m({.key_size = 3});
  const Eigen::MatrixXf keys = Eigen::MatrixXf::Identity(3, 3), beta = keys.row(0);
  Eigen::MatrixXf queries = keys;
  CHECK_NOTHROW(fw::check_tokens(m, {keys, keys, beta}, {queries}));
  queries(1, 2) = std::nanf("");
  CHECK_THROWS_WITH(fw::check_tokens(m, {keys, keys, beta}, {queries}),
                    ContainsSubstring("token 2: query[1] is nan"));
}

TEST_CASE("checked writes of chunks and draws", "[checked]") {
  const auto memory = fw::make_memory<float>(
      "StickyContinuousMemory",
      {.key_size = 3, .more = {{"chunk", 4}, {"samples", 8}, {"functions", 4}}});
  const AnyState<float> empty = memory.initial_state();
  AnyState<float> state = empty;
  MatrixXf signal = MatrixXf::Ones(3, 4), draws = MatrixXf::Zero(1, 8);
  memory.checked_write(state, {signal, draws});
  const AnyState<float> before = state;
  CHECK(!(before == empty));
  draws(5) = 1;
  CHECK_THROWS_WITH(memory.checked_write(state, {signal, draws}),
                    "ContinuousMemory: draws[5] is 1, expected at least 0 and below 1");
  CHECK(state == before);
  draws(5) = std::nextafter(1.0f, 0.0f);
  memory.checked_write(state, {signal, draws});
  state = empty;
  signal(2, 1) = std::nanf("");
  CHECK_THROWS_WITH(memory.checked_write(state, {signal, draws}),
                    ContainsSubstring("ContinuousMemory: signal(2, 1) is nan, expected a finite"));
  CHECK(state == empty);
}

TEST_CASE("checked steps: entries of the largest size keep the state finite", "[checked]") {
  const auto sum = fw::make_memory<float>("LinearAttention", {.key_size = 3});
  AnyState<float> state = sum.initial_state();
  const Eigen::Vector3f x = Eigen::Vector3f::Constant(0x1p50f);
  Eigen::VectorXf y(3);
  for (int t = 0; t < 10000; ++t) sum.checked_step(state, {x, x}, {x}, {y});
  CHECK(is_finite(laws::values_of(state)));
  const auto projected = fw::make_memory<float>("FastWeightMemory", {.key_size = 3});
  AnyState<float> unit = projected.initial_state();
  const Eigen::Vector3f key = Eigen::Vector3f::Constant(1e3f);
  const float beta = 1;
  for (int t = 0; t < 100; ++t) projected.checked_step(unit, {key, x, beta}, {key}, {y});
  CHECK(norm(unit) == Catch::Approx(1));
}

TEST_CASE("checked steps: the limit of TitansMemory for constant inputs", "[checked]") {
  const auto memory = fw::make_memory<double>("TitansMemory", {.key_size = 1});
  const VectorXd one = VectorXd::Ones(1), key = one * 2;  // of squared norm 4
  VectorXd y(1);
  for (const double momentum : {0.0, 0.5, 1.0})
    for (const double forget : {0.0, 0.5, 1.0}) {
      const double limit = (1 - forget / 2) * (1 + momentum) / 4;
      const double below = limit * 0.99, above = limit * 1.01;
      AnyState<double> state = memory.initial_state(), grown = state;
      for (int t = 0; t < 2000; ++t) {
        memory.checked_step(state, {key, one, below, momentum, forget}, {one}, {y});
        memory.step(grown, {key, one, above, momentum, forget}, {one}, {y});
      }
      CHECK(norm(state) < 1e3);
      CHECK(!(norm(grown) <= 1e3));
      CHECK_THROWS_WITH(
          memory.checked_step(state, {key, one, above, momentum, forget}, {one}, {y}),
          ContainsSubstring("TitansMemory: 2 rate / ((1 - forget / 2) (1 + momentum))"));
    }
}

TEST_CASE("checked steps: mapped keys must be finite and short", "[checked]") {
  const fw::FeatureMapped memory(fw::Comba<float>({.key_size = 4}), 2, fw::Dpfp<1>());
  auto state = fw::initial_state(memory);
  const Eigen::Vector2f small = Eigen::Vector2f::Ones(), large = small * 9e14f;
  Eigen::Vector4f y = Eigen::Vector4f::Zero();
  const Eigen::Vector4f value = Eigen::Vector4f::Ones();
  CHECK_NOTHROW(fw::checked_step(memory, state, {small, value, small, 1.0f, 1.0f}, {small}, {y}));
  CHECK_THROWS_WITH(
      fw::checked_step(memory, state, {small, value, large, 1.0f, 1.0f}, {small}, {y}),
      ContainsSubstring("the norm of a mapped key is "));
  const fw::FeatureMapped delta(fw::DeltaRule<float>({.key_size = 4}), 2, fw::Dpfp<1>());
  auto learned = fw::initial_state(delta);
  const Eigen::Vector2f unstable(0.5f, 10);
  CHECK_THROWS_WITH(fw::checked_step(delta, learned, {unstable, value, 0.5f}, {small}, {y}),
                    ContainsSubstring("beta times the squared norm of key is "));
  CHECK_THROWS_WITH(fw::checked_step(delta, learned, {large, value, 0.5f}, {small}, {y}),
                    ContainsSubstring("the norm of a mapped key is "));
  CHECK(learned.W.isZero(0));
}

TEST_CASE("HebbianMemory: rates that are not finite are refused, unstable ones by checked steps",
          "[checked]") {
  const auto hebbian = [](double decay, double rate) {
    return fw::make_memory<float>("HebbianMemory",
                                  {.key_size = 3, .more = {{"decay", decay}, {"rate", rate}}});
  };
  CHECK_THROWS_WITH(hebbian(std::nan(""), 1),
                    "HebbianMemory: decay is nan, expected a finite number");
  CHECK_THROWS_WITH(hebbian(1, std::nan("")),
                    "HebbianMemory: rate is nan, expected a finite number");
  for (const double decay : {2.0, -0.5}) {
    const auto memory = hebbian(decay, 1);
    AnyState<float> state = memory.initial_state();
    const Eigen::Vector3f x = Eigen::Vector3f::Ones();
    CHECK_THROWS_WITH(memory.checked_write(state, {x, x}),
                      ContainsSubstring("HebbianMemory: the constant decay is ") &&
                          ContainsSubstring(", expected 0 to 1"));
    CHECK(norm(state) == 0);
  }
}

}  // namespace
