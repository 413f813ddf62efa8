#include <fastweights/algorithms/checked.hpp>
#include <fastweights/continuous/basis.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/core/owned.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/recurrent/delta_lstm.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>
#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>
#include <fastweights/memories/recurrent/self_referential_matrix.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/fast_weight_memory.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>

#include "support/catch.hpp"

/// \file
/// Checked steps and scans: what they refuse, and that a refusal changes nothing.

using Catch::Matchers::ContainsSubstring;
using fw::Dynamic;
using fw::Index;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

using fw::detail::Leaf;

// The arrays of a record.
template <class R> std::vector<Leaf> leaves_of(R& record) {
  std::vector<Leaf> leaves;
  fw::detail::visit_all_leaves(
      [&](const Leaf* leaf, const fw::detail::LeafPath&) { leaves.push_back(*leaf); }, record);
  return leaves;
}

// Fills a member with numbers in the range of its role. Keys and distributions have sum 1 and so at
// most length 1.
void fill(const Leaf& leaf, fw::Role role) {
  const bool sums_to_1 = role == fw::Role::key || role == fw::Role::distribution;
  const double sum = static_cast<double>(leaf.rows * (leaf.rows + 1) / 2);
  for (Index i = 0; i < leaf.size(); ++i) {
    const auto number = static_cast<double>(i % leaf.rows + 1);
    leaf.store(i, sums_to_1 ? number / sum : role == fw::Role::value ? -3 * number : 0.5);
  }
}
template <class Owned, class S, class E> Owned good_inputs(const E& extents, Index steps) {
  auto record = fw::owned_sequence<Owned>(extents, steps, S(0));
  std::size_t i = 0;
  for (const Leaf& leaf : leaves_of(record)) fill(leaf, Owned::roles[i++]);
  return record;
}

std::string bytes_of(const std::vector<Leaf>& leaves) {
  std::string bytes;
  for (const Leaf& leaf : leaves)
    bytes.append(static_cast<const char*>(leaf.data),
                 static_cast<std::size_t>(leaf.size()) * leaf.width);
  return bytes;
}

// A memory with inputs for some tokens, whatever its type is.
struct AnyCase {
  static constexpr Index steps = 9;
  virtual ~AnyCase() = default;
  virtual void scan() = 0;
  virtual void step(Index t) = 0;
  virtual void write(Index t) = 0;
  std::string rule;
  double large = 0;  // too large for an input
  std::vector<Leaf> written, read, state_leaves, output_leaves;
  std::vector<std::string_view> written_names, read_names;
};

template <class M> struct Case : AnyCase {
  using S = typename M::Scalar;
  M memory;
  fw::OwnedWrites<M> inputs = good_inputs<fw::OwnedWrites<M>, S>(memory.signature().write(), steps);
  fw::OwnedReads<M> queries = good_inputs<fw::OwnedReads<M>, S>(memory.signature().read(), steps);
  fw::OwnedOuts<M> outputs =
      fw::owned_sequence<fw::OwnedOuts<M>>(memory.signature().out(), steps, S(7));
  fw::StateOf<M> state = fw::initial_state(memory);
  fw::WriteSequence<M> in = fw::view<fw::WriteSequence<M>>(inputs);
  fw::ReadSequence<M> query = fw::view<fw::ReadSequence<M>>(queries);
  fw::OutSequence<M> out = fw::view<fw::OutSequence<M>>(outputs);

  explicit Case(M m) : memory(std::move(m)) {
    rule = M::name;
    large = std::is_same_v<S, float> ? 3e15 : 1e151;
    written = leaves_of(inputs);
    read = leaves_of(queries);
    state_leaves = leaves_of(state);
    output_leaves = leaves_of(outputs);
    written_names.assign(decltype(inputs)::names.begin(), decltype(inputs)::names.end());
    read_names.assign(decltype(queries)::names.begin(), decltype(queries)::names.end());
    scan();
  }
  Case(const Case&) = delete;

  void scan() override { fw::checked_scan(memory, state, in, query, out); }
  void step(Index t) override {
    const auto sizes = memory.signature();
    using fw::detail::token_at;
    fw::checked_step(memory, state, token_at<fw::WriteToken<M>>(in, sizes.write(), t),
                     token_at<fw::ReadToken<M>>(query, sizes.read(), t),
                     token_at<fw::OutToken<M>>(out, sizes.out(), t));
  }
  void write(Index t) override {
    fw::checked_write(memory, state,
                      fw::detail::token_at<fw::WriteToken<M>>(in, memory.signature().write(), t));
  }
};

// Sets one entry of a member, calls scan, step and write, and restores the entry. They must refuse
// it with the text, and change nothing.
void refuses(AnyCase& c, const Leaf& member, Index row, Index column, double bad,
             const std::string& text, bool is_written = true) {
  const Index token = column / (member.cols / c.steps), at = row + column * member.rows;
  const std::string state = bytes_of(c.state_leaves), outputs = bytes_of(c.output_leaves);
  std::string before(static_cast<const char*>(member.entry(at)), member.width);
  member.store(at, bad);
  const std::string numbered = c.rule + ": token " + std::to_string(token) + ": ";
  CHECK_THROWS_WITH(c.scan(), ContainsSubstring(numbered) && ContainsSubstring(text));
  CHECK_THROWS_WITH(c.step(token), ContainsSubstring(c.rule + ": ") && ContainsSubstring(text) &&
                                       !ContainsSubstring("token"));
  if (is_written) CHECK_THROWS_WITH(c.write(token), ContainsSubstring(text));
  CHECK(bytes_of(c.state_leaves) == state);
  CHECK(bytes_of(c.output_leaves) == outputs);
  std::copy(before.begin(), before.end(), static_cast<char*>(member.entry(at)));
}
template <class Matrix>
requires requires(Matrix& m) { m.colStride(); }
void refuses(AnyCase& c, Matrix& member, Index row, Index column, double bad,
             const std::string& text) {
  refuses(c, fw::detail::leaf_of<Matrix>(&member), row, column, bad, text);
}

// Numbers that no member of any memory may have.
void refuses_numbers(AnyCase&& c) {
  const auto each = [&](const Leaf& member, std::string_view name, bool is_written) {
    for (const double bad : {not_a_number, infinity, -infinity, c.large, -c.large})
      for (const Index column : {Index(0), member.cols - 1})
        refuses(c, member, member.rows - 1, column, bad, std::string(name), is_written);
  };
  for (std::size_t i = 0; i < c.written.size(); ++i) each(c.written[i], c.written_names[i], true);
  for (std::size_t i = 0; i < c.read.size(); ++i) each(c.read[i], c.read_names[i], false);
  c.scan();
  for (Index t = 0; t < c.steps; ++t) c.step(t);
  for (const Leaf& leaf : c.state_leaves) {
    const Index n = leaf.size();
    CHECK(fw::detail::first_outside({leaf.data, n, 1, n, leaf.scalar}, {}) == -1);
  }
}

template <class S>
using Kimi = fw::GatedDeltaRule<S, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>;
template <class S>
using RowDelta = fw::DeltaRule<S, Dynamic, Dynamic, fw::NoNormaliser, fw::KeyValueVectorBeta>;
template <class S>
using NormalisedDelta = fw::DeltaRule<S, Dynamic, Dynamic, fw::AttentionNormaliser<S>>;

}  // namespace

TEST_CASE("checked scan and step: numbers that are not finite or too large", "[checked]") {
  refuses_numbers(Case(fw::LinearAttention<float>({5, 3})));
  refuses_numbers(Case(fw::DeltaRule<float, 5, 3>()));
  refuses_numbers(Case(fw::DeltaRule<double>({1, 3})));
  refuses_numbers(Case(RowDelta<float>({5, 3})));
  refuses_numbers(Case(NormalisedDelta<float>({5, 3})));
  refuses_numbers(Case(fw::GatedDeltaRule<float>({5, 3})));
  refuses_numbers(Case(Kimi<double>({5, 3})));
  refuses_numbers(Case(fw::GatedLinearAttention<float>({5, 3})));
  refuses_numbers(Case(fw::HebbianMemory<float>({5, 3})));
  refuses_numbers(Case(fw::FastWeightMemory<float>({5, 3})));
  refuses_numbers(Case(fw::Programmer1991<float>({5, 3})));
  refuses_numbers(Case(fw::KeyValueCache<float>({5, 3}, {.capacity = 4})));
  refuses_numbers(Case(fw::DeltaRnn<float>({5, 3})));
  refuses_numbers(Case(fw::DeltaLstm<float>({5, 3})));
  refuses_numbers(Case(fw::RecurrentDeltaNet<float>({5, 3})));
  refuses_numbers(Case(fw::SelfReferentialMatrix<float>({5, 3})));
  refuses_numbers(Case(fw::Deferred(fw::DeltaRule<float>({5, 3}))));
  refuses_numbers(Case(
      fw::FeatureMapped<fw::DeltaRule<float>, fw::L2Normalise>(fw::DeltaRule<float>({5, 3}), 5)));
}

TEST_CASE("checked scan and step: the ranges of roles", "[checked]") {
  Case gated(fw::GatedDeltaRule<float>({5, 3}));
  refuses(gated, gated.inputs.decay, 0, 4, 2, "decay is 2, expected 0 to 1");
  refuses(gated, gated.inputs.decay, 0, 8, -1, "decay is -1, expected 0 to 1");
  refuses(gated, gated.inputs.beta, 0, 0, -0.5, "beta is -0.5, expected 0 to 2");
  refuses(gated, gated.inputs.beta, 0, 3, 2.5, "beta is 2.5, expected 0 to 2");
  Case kimi(Kimi<double>({5, 3}));
  refuses(kimi, kimi.inputs.decay, 3, 4, 1.0000001, "decay[3] is 1, expected 0 to 1");
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
