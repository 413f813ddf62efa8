#include <fastweights/algorithms/backward.hpp>
#include <fastweights/continuous/density.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <fastweights/testing/sequences.hpp>
#include <set>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

/// \file
/// Members of the type of a continuous memory alone: its operators, its sample positions and
/// errors of its options.

namespace {

using Catch::Matchers::ContainsSubstring;
using Eigen::MatrixXd;
using fw::Contraction;
using fw::EvenSampling;
using fw::Index;
using fw::SamplingScheme;
using fw::StickySampling;
using Learned = fw::MixtureDensity<double, fw::LearnedComponents<double>>;
using Gaussians = fw::GaussianBasis<double>;
using Slots = fw::RectangularBasis<double>;
template <class Sampling = EvenSampling>
using Memory = fw::ContinuousMemory<double, Learned, Gaussians, Sampling>;
using Gibbs = fw::ContinuousMemory<double, fw::GibbsDensity<double>, Slots>;

MatrixXd random_matrix(Index rows, Index cols, fw::Random& random) {
  MatrixXd m(rows, cols);
  random.fill(m);
  return m;
}

// d = 4, 2 heads, chunks of 3, 5 samples.
template <class M = Memory<>> typename M::Options options() {
  typename M::Options o;
  o.d = 4;
  o.heads = 2;
  o.chunk = 3;
  o.samples = 5;
  o.regression.ridge = 0.1;
  return o;
}

// Of 6 functions.
template <class M> M memory_with(const typename M::Options& o) {
  fw::Random random(5);
  Learned density{fw::LearnedComponents<double>(6, 1, true, 1e-3)};
  density.components.initialise(random);
  return {o, {6, {0.1, 0.3}}, density};
}
Memory<> memory(Contraction contraction = Contraction::even()) {
  auto o = options();
  o.contraction = contraction;
  return memory_with<Memory<>>(o);
}

TEST_CASE("an operator is computed once, for a memory and its copies", "[continuous]") {
  const auto m = memory();
  const auto* first = &m.ridge_operator_for(3, 0);
  const auto* later = &m.ridge_operator_for(3, 6);
  CHECK(first != later);
  CHECK(&m.ridge_operator_for(3, 0) == first);
  const auto copy = m;
  CHECK(&copy.ridge_operator_for(3, 6) == later);
  const auto* new_one = &copy.ridge_operator_for(4, 6);
  CHECK(&m.ridge_operator_for(4, 6) == new_one);
  const auto fixed = memory(Contraction::fixed(0.5));
  CHECK(&fixed.ridge_operator_for(3, 6) == &fixed.ridge_operator_for(3, 600));
  CHECK(first->past.size() == 0);
  CHECK((later->past.rows() == 6 && later->past.cols() == 6));  // N×N, includes the samples
  CHECK((later->new_tokens.rows() == 3 && later->new_tokens.cols() == 6));
}

TEST_CASE("operators beyond the capacity of the cache are correct", "[continuous]") {
  using Cache = fw::detail::OperatorCache<double>;
  const Cache cache;
  int made = 0;
  const auto get = [&](Index new_tokens) -> const fw::RidgeOperator<double>& {
    return cache.get({new_tokens, 0.5}, [&](const Cache::Key& key) {
      ++made;
      return fw::RidgeOperator<double>{MatrixXd::Constant(1, 1, double(key.new_tokens)), {}};
    });
  };
  for (int round = 0; round < 2; ++round)
    for (Index i = 0; i < Cache::capacity + 20; ++i) CHECK(get(i).past(0, 0) == double(i));
  CHECK(made == Cache::capacity + 2 * 20);
  CHECK(&get(0) == &get(0));
  CHECK(Cache::capacity < 150);  // the writes in continuous_memory_test.cpp
}

TEST_CASE("a prepared memory has all operators of a stream, and computes the same",
          "[continuous]") {
  const Index length = 3, horizon = 20;
  const auto limited = Contraction::even(horizon);
  const auto prepared = memory(limited), other = memory(limited);
  prepared.prepare(length);
  std::set<const void*> before;  // operators for 0, 3, …, 18 and 20 tokens
  for (const Index tokens : {0, 3, 6, 9, 12, 15, 18, 20})
    before.insert(&prepared.ridge_operator_for(length, tokens));
  CHECK(before.size() == 8);
  fw::Random random(4);
  const MatrixXd x = random_matrix(4, length, random);
  auto a = fw::initial_state(prepared), b = fw::initial_state(other);
  for (int write = 0; write < 30; ++write) {
    CHECK(before.count(&prepared.ridge_operator_for(length, a.tokens)) == 1);
    fw::write(prepared, a, {x});
    fw::write(other, b, {x});
    CHECK(a.coefficients == b.coefficients);
  }
  CHECK_THROWS_WITH(memory().prepare(3), ContainsSubstring("expected fixed(tau)"));
  CHECK_THROWS_WITH(prepared.prepare(0), ContainsSubstring("new_tokens is 0"));
}

TEST_CASE("a memory that was moved from is still a memory", "[continuous]") {
  auto m = memory();
  const auto moved = std::move(m);
  fw::Random random(4);
  const MatrixXd x = random_matrix(4, 2, random);
  auto a = fw::initial_state(moved), b = fw::initial_state(m);  // NOLINT: used after a move
  for (int write = 0; write < 3; ++write) {
    fw::write(moved, a, {x});
    fw::write(m, b, {x});
  }
  CHECK(a.coefficients == b.coefficients);
  m = moved;
  fw::write(m, b, {x});
}

using Positions = Eigen::VectorXd;

Positions positions(const Eigen::RowVectorXd& histogram, const Eigen::RowVectorXd& draws,
                    SamplingScheme scheme) {
  Positions to(draws.size());
  fw::detail::sticky_positions(histogram, draws, scheme, to);
  return to;
}

TEST_CASE("sticky positions invert the histogram", "[continuous][sticky]") {
  Eigen::RowVectorXd histogram(4), draws(4);
  histogram << 0, 3, 0, 1;
  draws.setConstant(0.5);
  Positions expected(4);
  // 1/8, 3/8, 5/8 and 7/8 of the mass: the first three are in bin 1, the last in bin 3.
  expected << 0.25 + 0.25 / 6, 0.25 + 0.25 * 3 / 6, 0.25 + 0.25 * 5 / 6, 0.75 + 0.25 * 0.5;
  CHECK(largest_entry(positions(histogram, draws, SamplingScheme::stratified) - expected) <= 1e-15);
  draws << 0.9, 0.1, 0.76, 0.5;  // left edges, ascending
  expected << 0.25, 0.25, 0.75, 0.75;
  CHECK(positions(histogram, draws, SamplingScheme::published) == expected);
}

TEST_CASE("an empty histogram gives evenly spaced positions", "[continuous][sticky]") {
  const Eigen::RowVectorXd draws = Eigen::RowVectorXd::Constant(5, 0.9);
  Positions expected(5);
  expected << 0.1, 0.3, 0.5, 0.7, 0.9;
  for (const SamplingScheme scheme : {SamplingScheme::stratified, SamplingScheme::published})
    for (const double each : {0.0, double(NAN)})
      CHECK(largest_entry(positions(Eigen::RowVectorXd::Constant(7, each), draws, scheme) -
                          expected) <= 1e-15);
}

TEST_CASE("sticky positions are ascending, in [0, 1] and in bins with mass",
          "[continuous][sticky]") {
  fw::Random random(6);
  for (const SamplingScheme scheme : {SamplingScheme::stratified, SamplingScheme::published})
    for (const Index bins : {1, 2, 37})
      for (const Index count : {1, 5, 200}) {
        Eigen::RowVectorXd histogram(bins), draws(count);
        for (Index b = 0; b < bins; ++b) histogram[b] = b % 3 == 1 ? 0 : random.uniform();
        for (Index m = 0; m < count; ++m) draws[m] = random.uniform();
        draws[0] = 0;
        if (count > 1) draws[count - 1] = std::nextafter(1.0, 0.0);
        const Positions at = positions(histogram, draws, scheme);
        for (Index m = 0; m < count; ++m) {
          CHECK((at[m] >= 0 && at[m] <= 1));
          if (m > 0) CHECK(at[m] >= at[m - 1]);
          const auto bin = static_cast<Index>(std::min(double(bins) - 1, at[m] * double(bins)));
          const bool edge =
              std::abs(at[m] * double(bins) - std::round(at[m] * double(bins))) < 1e-9;
          CHECK((histogram[bin] > 0 || edge));
        }
      }
  // Stratified: the number of samples per bin is proportional to its mass, up to 1 at each end.
  const Index count = 1000;
  Eigen::RowVectorXd histogram(10), draws(count);
  for (Index b = 0; b < 10; ++b) histogram[b] = double(b * b);
  for (Index m = 0; m < count; ++m) draws[m] = random.uniform();
  const Positions at = positions(histogram, draws, SamplingScheme::stratified);
  for (Index b = 0; b < 10; ++b) {
    const auto within = (at.array() >= double(b) / 10 && at.array() < double(b + 1) / 10).count();
    CHECK(std::abs(double(within) - histogram[b] / histogram.sum() * count) <= 2);
  }
}

TEST_CASE("a draw that is rounded to 1 gives a bin with mass", "[continuous][sticky]") {
  Eigen::RowVectorXd histogram(4), draws(1);
  histogram << 1, 2, 0, 0;
  draws[0] = 1;
  CHECK(positions(histogram, draws, SamplingScheme::stratified)[0] == 0.5);
  CHECK(positions(histogram, draws, SamplingScheme::published)[0] == 0.25);
}

TEST_CASE("a sticky memory samples where reads attended to, and a write clears the histogram",
          "[continuous][sticky]") {
  using M = Memory<StickySampling>;
  auto o = options<M>();
  o.d = o.heads = 1;
  o.chunk = 4;
  o.samples = 6;
  o.sampling.bins = 16;
  Learned narrow{fw::LearnedComponents<double>(5)};
  narrow.components.mean_bias[0] = std::log(0.8 / 0.2);
  narrow.components.variance_bias[0] = -9;  // N(0.8, 0.011²)
  const M m(o, {5, {0.2}}, narrow);
  fw::Random random(7);
  const MatrixXd x = random_matrix(1, 4, random), q = random_matrix(1, 4, random);
  MatrixXd y(1, 4);
  const Eigen::RowVectorXd u = Eigen::RowVectorXd::Constant(6, 0.5);
  auto state = fw::initial_state(m);
  fw::write(m, state, {x, u});
  CHECK(state.histogram.isZero(0));
  fw::read(m, state, {q}, {y});
  CHECK(state.histogram.sum() == Catch::Approx(4));
  Positions at(6);
  m.sample_positions(state, u, at);
  CHECK(largest_entry(at.array() - 0.8) <= 1.0 / 16);

  // The write uses exactly these positions.
  const auto& g = m.ridge_operator_for(4, 4);
  const std::vector<double> list(at.data(), at.data() + 6);
  const MatrixXd expected =
      state.coefficients * fw::detail::basis_at(m.basis(), list) * g.past + x * g.new_tokens;
  fw::write(m, state, {x, u});
  CHECK(largest_entry(state.coefficients - expected) <= 1e-13 * largest_entry(expected));
  CHECK(state.histogram.isZero(0));
}

// A read of a sticky memory changes it, so that the backward pass recomputes its outputs too.
TEST_CASE("checkpoints of a sticky memory take the size of its outputs", "[continuous][sticky]") {
  using M = Memory<StickySampling>;
  fw::Checkpoints<M> checkpoints;
  for (const Index d : {4, 8, 2}) {
    auto o = options<M>();
    o.d = d;
    const M m = memory_with<M>(o);
    fw::Random random(6);
    auto all = fw::testing::random_sequences(m, 2, random), gradients = all;
    auto state = fw::initial_state(m), ds = fw::zero_gradient(m);
    const auto inputs = fw::view<fw::WriteSequence<M>>(all.inputs);
    const auto queries = fw::view<fw::ReadSequence<M>>(all.queries);
    fw::scan(m, state, inputs, queries, fw::view<fw::OutSequence<M>>(all.outputs), checkpoints);
    fw::backward(m, checkpoints, inputs, queries,
                 fw::view<fw::OutGradSequence<M>>(gradients.outputs), ds,
                 fw::view<fw::WriteGradSequence<M>>(gradients.inputs),
                 fw::view<fw::ReadGradSequence<M>>(gradients.queries));
    CHECK(checkpoints.recomputed_output.output.rows() == d);
  }
}

TEST_CASE("continuous memory: the error names the option that is out of range", "[continuous]") {
  const Learned seven{fw::LearnedComponents<double>(7)}, six{fw::LearnedComponents<double>(6)};
  const auto make = [&](auto change) {
    auto o = options();
    change(o);
    return Memory<>(o, {6, {0.1}}, six);
  };
  CHECK_THROWS_WITH(make([](auto& o) { o.d = 0; }), ContainsSubstring("ContinuousMemory: d is 0"));
  CHECK_THROWS_WITH(make([](auto& o) { o.heads = 3; }),
                    "ContinuousMemory: d is 4, expected a multiple of heads, 3");
  CHECK_THROWS_WITH(make([](auto& o) { o.heads = 0; }), ContainsSubstring("heads is 0"));
  CHECK_THROWS_WITH(make([](auto& o) { o.chunk = 0; }), ContainsSubstring("chunk is 0"));
  CHECK_THROWS_WITH(make([](auto& o) { o.samples = -1; }), ContainsSubstring("samples is -1"));
  for (const double tau : {-0.1, 1.0, double(NAN)})
    CHECK_THROWS_WITH(make([&](auto& o) { o.contraction = Contraction::fixed(tau); }),
                      ContainsSubstring("ContinuousMemory: tau is"));
  CHECK_THROWS_WITH(make([](auto& o) { o.contraction = Contraction::even(0); }),
                    ContainsSubstring("horizon is 0"));
  for (const double ridge : {-1e-9, -1.0, double(NAN)})
    CHECK_THROWS_WITH(make([&](auto& o) { o.regression.ridge = ridge; }),
                      ContainsSubstring("ContinuousMemory: ridge is"));
  for (const double padding : {-0.1, double(NAN)})
    CHECK_THROWS_WITH(make([&](auto& o) { o.regression.padding = padding; }),
                      ContainsSubstring("ContinuousMemory: padding is"));
  CHECK_THROWS_WITH(Memory<>(options(), {6, {0.1}}, seven),
                    "ContinuousMemory: the density has 7 functions, the basis expects 6");
  const Slots five(5);
  CHECK_THROWS_WITH(Gibbs(options<Gibbs>(), five, fw::GibbsDensity<double>(Slots(6))),
                    "ContinuousMemory: the density has 6 functions, the basis expects 5");
}

}  // namespace
