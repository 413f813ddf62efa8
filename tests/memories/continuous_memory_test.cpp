#include <set>
#include <thread>

#include "support/continuous_memories.hpp"

namespace {

using namespace continuous_memories;
using Catch::Matchers::ContainsSubstring;
using Eigen::MatrixXd;

MatrixXd random_matrix(Index rows, Index cols, fw::Random& random) {
  MatrixXd m(rows, cols);
  random.fill(m);
  return m;
}

double apart(const MatrixXd& a, const MatrixXd& b) {
  return largest_entry(a - b) / std::max(1e-300, b.cwiseAbs().maxCoeff());
}

// Compares writes of these lengths, and a read after each, with the header's equations.
template <class M> void check_definition(const M& m, const std::vector<Index>& lengths) {
  const auto& o = m.options();
  fw::Random random(1);
  auto state = fw::initial_state(m);
  MatrixXd b = MatrixXd::Zero(o.d, m.basis().size());
  Index tokens = 0;
  for (const Index length : lengths) {
    const MatrixXd x = random_matrix(o.d, length, random), q = random_matrix(o.d, length, random);
    MatrixXd y = MatrixXd::Constant(o.d, length, NAN), expected(o.d, length);
    fw::write(m, state, {x});
    const double even = double(tokens) / double(tokens + length);
    const double tau = tokens > 0 && o.contraction.tau > 0 ? o.contraction.tau : even;
    const Index past = tokens > 0 ? o.samples : 0;
    const auto to = o.regression.parity
                        ? fw::detail::published_positions(past, length, tau)
                        : fw::detail::cell_centres(past, length, tau, o.regression.padding);
    const auto g = fw::ridge_operator(m.basis(), to, o.regression.ridge);
    std::vector<double> at;
    for (Index i = 0; i < past; ++i)
      at.push_back((double(i) + (o.regression.parity ? 1 : 0.5)) / double(past));
    if (past > 0) b = b * fw::detail::basis_at(m.basis(), at) * g.past + x * g.new_tokens;
    if (past == 0) b = x * g.new_tokens;
    tokens += length;
    INFO("L " << length << ", N " << b.cols() << ", M " << o.samples);
    CHECK(apart(state.coefficients, b) <= 1e-11);
    CHECK(state.tokens == tokens);

    fw::read(m, state, {q}, {y});
    const Index rows = o.d / o.heads;
    Eigen::VectorXd r(b.cols());
    for (Index i = 0; i < length; ++i)
      for (Index h = 0; h < o.d; h += rows) {
        const Eigen::VectorXd s =
            b.middleRows(h, rows).transpose() * q.col(i).segment(h, rows) / std::sqrt(double(rows));
        m.density().expect(m.basis(), s, m.density().mixture_of(m.basis(), s), r);
        expected.col(i).segment(h, rows) = b.middleRows(h, rows) * r;
      }
    CHECK(apart(y, expected) <= 1e-10);
  }
}

TEST_CASE("continuous memory writes and reads as defined, in chunks of any length",
          "[continuous]") {
  const std::vector<Index> lengths{3, 1, 8, 7, 40, 2, 2};
  for (const auto contraction : {Contraction::even(), Contraction::fixed(0.7)})
    for (const auto& [d, heads, samples, functions] : std::vector<std::array<Index, 4>>{
             {4, 2, 5, 6}, {3, 1, 1, 5}, {1, 1, 9, 1}, {6, 6, 4, 7}}) {
      auto o = options<Memory<double>>(d, heads, 1, samples, contraction);
      for (const auto& regression :
           {fw::Regression{0.1, 0.5, false}, {0.5, 0, false}, {0.3, 1.3, false}, {1, 0.5, true}}) {
        o.regression = regression;
        check_definition(Memory<double>(o, {functions, {0.1, 0.3}}, density(functions)), lengths);
      }
    }
}

TEST_CASE("an empty continuous memory returns 0", "[continuous]") {
  const auto m = memory(4, 2, 3, 5, 6);
  const auto state = fw::initial_state(m);
  fw::Random random(2);
  const MatrixXd q = random_matrix(4, 3, random);
  MatrixXd y = MatrixXd::Constant(4, 3, NAN);
  fw::read(m, state, {q}, {y});
  CHECK(y.isZero(0));
}

TEST_CASE("Backpropagate::chunk truncates the gradients at each chunk", "[continuous]") {
  auto o = options<Memory<double>>(4, 2, 3, 5);
  const Memory<double> past(o, {6, {0.1, 0.3}}, density(6));
  o.backpropagate = Backpropagate::chunk;
  const Memory<double> chunk(o, {6, {0.1, 0.3}}, density(6));
  fw::Random random(3);
  const MatrixXd x = random_matrix(4, 6, random), q = random_matrix(4, 6, random),
                 dy = random_matrix(4, 6, random);
  auto all = fw::testing::random_sequences(chunk, 2, random);
  MatrixXd y(4, 6), dx = MatrixXd::Zero(4, 6), dq = dx, cut_dx = dx, cut_dq = dx, full_dx = dx;
  const auto initial = fw::testing::random_state(past, 2, random);
  auto ds = fw::zero_gradient(past), cut_ds = ds, full_ds = ds;
  fw::backward(chunk, initial, {x}, {q}, {dy}, ds, {dx}, {dq});
  dq.setZero();
  fw::backward(past, initial, {x}, {q}, {dy}, full_ds, {full_dx}, {dq});

  auto first = initial;
  fw::write(past, first, {x.leftCols(3)});
  auto second = first;
  fw::write(past, second, {x.rightCols(3)});
  past.read_vjp(second, {q.rightCols(3)}, {dy.rightCols(3)}, cut_ds, {cut_dq.rightCols(3)});
  past.write_vjp(first, {x.rightCols(3)}, cut_ds, {cut_dx.rightCols(3)});
  cut_ds.coefficients.setZero();
  past.read_vjp(first, {q.leftCols(3)}, {dy.leftCols(3)}, cut_ds, {cut_dq.leftCols(3)});
  past.write_vjp(initial, {x.leftCols(3)}, cut_ds, {cut_dx.leftCols(3)});
  CHECK(apart(dx, cut_dx) <= 1e-14);
  CHECK(apart(dq, cut_dq) <= 1e-14);
  CHECK(ds.coefficients.isZero(0));
  CHECK(apart(full_dx.rightCols(3), dx.rightCols(3)) <= 1e-14);
  CHECK(apart(full_dx.leftCols(3), dx.leftCols(3)) > 1e-3);
  CHECK(!full_ds.coefficients.isZero(1e-3));
}

TEST_CASE("resetting one of several states does not change the others", "[continuous]") {
  const auto m = memory<StickySampling>(4, 2, 3, 5, 6);
  using M = Memory<double, StickySampling>;
  fw::Random random(4);
  std::vector<fw::StateOf<M>> together(3, fw::initial_state(m)), alone = together;
  const auto go = [&](std::vector<fw::StateOf<M>>& states, std::size_t i, std::uint64_t seed) {
    fw::Random same(seed);
    auto all = fw::testing::random_sequences(m, 4, same);
    laws::scan(m, states[i], all);
    return all.outputs.output;
  };
  for (std::size_t i = 0; i < 3; ++i) go(together, i, i);
  go(alone, 0, 0);
  go(alone, 2, 2);
  together[1] = fw::initial_state(m);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(go(together, i, 10 + i) == go(alone, i, 10 + i));
    CHECK(together[i].coefficients == alone[i].coefficients);
    CHECK(together[i].histogram == alone[i].histogram);
  }
}

// ---- Many writes.

#ifdef NDEBUG
constexpr int many = 100000, thousands = 3000;
#else
constexpr int many = 2000, thousands = 200;  // Eigen without optimisation is 50 times slower
#endif

TEST_CASE("after very many writes the state converges and stays bounded", "[continuous]") {
  const auto m = memory(2, 1, 3, 8, 8, Contraction::fixed(0.75));
  const auto narrow = m.cast<float>();
  fw::Random random(5);
  const MatrixXd period = random_matrix(2, 9, random);
  const Eigen::MatrixXf rounded = period.cast<float>();
  auto state = fw::initial_state(m);
  auto float_state = fw::initial_state(narrow);
  const auto go_on = [&] {  // one period
    for (Index i = 0; i < 9; i += 3) {
      fw::write(m, state, {period.middleCols(i, 3)});
      fw::write(narrow, float_state, {rounded.middleCols(i, 3)});
    }
  };
  for (int i = 0; i < many / 3; ++i) go_on();
  const auto last = state;
  CHECK(state.coefficients.allFinite());
  CHECK(state.coefficients.norm() <= 10 * period.norm());
  CHECK(state.coefficients.norm() >= 1e-3 * period.norm());
  CHECK(apart(float_state.coefficients.cast<double>(), state.coefficients) <= 1e-5);
  go_on();
  CHECK(apart(state.coefficients, last.coefficients) <= 1e-13);
  CHECK(state.tokens == 9 * (many / 3 + 1));
}

TEST_CASE("a constant signal stays constant over thousands of writes", "[continuous]") {
  for (const auto contraction : {Contraction::fixed(0.75), Contraction::even()}) {
    auto o = options<Memory<double>>(1, 1, 4, 16, contraction);
    o.regression = {1e-6, 0, false};
    const Memory<double> m(o, {9, {0.2}}, density(9));
    const auto narrow = m.cast<float>();
    const MatrixXd x = MatrixXd::Constant(1, 4, 0.7);
    const Eigen::MatrixXf rounded = x.cast<float>();
    auto state = fw::initial_state(m);
    auto float_state = fw::initial_state(narrow);
    for (int i = 0; i < thousands; ++i) {
      fw::write(m, state, {x});
      fw::write(narrow, float_state, {rounded});
    }
    const MatrixXd psi =
        fw::detail::basis_at(m.basis(), fw::detail::cell_centres(0, 50, 0, 0).new_tokens);
    const MatrixXd signal = state.coefficients * psi;
    const MatrixXd float_signal = float_state.coefficients.cast<double>() * psi;
    INFO("tau " << contraction.tau << ": signal from " << signal.minCoeff() << " to "
                << signal.maxCoeff() << ", in float from " << float_signal.minCoeff() << " to "
                << float_signal.maxCoeff());
    CHECK(largest_entry(signal.array() - 0.7) <= 0.03);
    // A fixed contraction forgets rounding errors of old writes. An even one forgets nothing: about
    // 4e-7 per write, depending on the instruction set, adds up over thousands of writes.
    const double rounding = contraction.tau > 0 ? 1e-3 : std::max(1e-3, 1e-6 * thousands);
    CHECK(largest_entry(float_signal - signal) <= rounding);
  }
}

// ---- Operators.

TEST_CASE("an operator is computed once, for a memory and its copies", "[continuous]") {
  const auto m = memory(4, 2, 3, 5, 6);
  const auto* first = &m.ridge_operator_for(3, 0);
  const auto* later = &m.ridge_operator_for(3, 6);
  CHECK(first != later);
  CHECK(&m.ridge_operator_for(3, 0) == first);
  const auto copy = m;
  CHECK(&copy.ridge_operator_for(3, 6) == later);
  const auto* new_one = &copy.ridge_operator_for(4, 6);
  CHECK(&m.ridge_operator_for(4, 6) == new_one);
  const auto fixed = memory(4, 2, 3, 5, 6, Contraction::fixed(0.5));
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

  auto m = memory(2, 1, 3, 4, 5);
  // With an even contraction every write has its own operator.
  check_definition(m, std::vector<Index>(Cache::capacity + 20, 2));
}

TEST_CASE("a prepared memory has all operators of a stream, and computes the same",
          "[continuous]") {
  const Index length = 3, horizon = 20;
  const auto limited = Contraction::even(horizon);
  const auto prepared = memory(4, 2, length, 5, 6, limited),
             other = memory(4, 2, length, 5, 6, limited);
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
  CHECK_THROWS_WITH(memory(4, 2, 3, 5, 6).prepare(3), ContainsSubstring("expected fixed(tau)"));
  CHECK_THROWS_WITH(prepared.prepare(0), ContainsSubstring("new_tokens is 0"));
}

TEST_CASE("a memory that was moved from is still a memory", "[continuous]") {
  const Slots<double> basis(6);
  Gibbs<double> m(options<Gibbs<double>>(4, 2, 2, 5), basis, fw::GibbsDensity<double>(basis));
  const Gibbs<double> moved = std::move(m);
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

TEST_CASE("threads that share a memory compute the same as one thread", "[continuous]") {
  const auto m = memory<StickySampling>(4, 2, 3, 5, 6);
  const auto run = [](const auto& rule, std::uint64_t seed) {
    fw::Random random(seed);
    auto all = fw::testing::random_sequences(rule, 40, random);
    auto state = fw::initial_state(rule);
    laws::scan(rule, state, all);
    return MatrixXd(all.outputs.output);
  };
  std::vector<MatrixXd> serial, together(4);
  for (std::uint64_t i = 0; i < 4; ++i) serial.push_back(run(m, i));
  for (int round = 0; round < 3; ++round) {
    const auto shared = memory<StickySampling>(4, 2, 3, 5, 6);  // its cache is empty
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; ++i)
      threads.emplace_back([&, i] { together[i] = run(shared, i); });
    for (auto& each : threads) each.join();
    for (std::size_t i = 0; i < 4; ++i) CHECK(together[i] == serial[i]);
  }
}

// ---- Sample positions.

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
  using M = Memory<double, StickySampling>;
  auto o = options<M>(1, 1, 4, 6);
  o.sampling.bins = 16;
  Learned<double> narrow{fw::LearnedComponents<double>(5)};
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
  CHECK(apart(state.coefficients, expected) <= 1e-13);
  CHECK(state.histogram.isZero(0));
}

// ---- Errors.

TEST_CASE("continuous memory: the error names the option that is out of range", "[continuous]") {
  const auto make = [](auto change) {
    auto o = options<Memory<double>>(4, 2, 3, 5);
    change(o);
    return Memory<double>(o, {6, {0.1}}, density(6));
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
  for (const double ridge : {0.0, -1.0, double(NAN)})
    CHECK_THROWS_WITH(make([&](auto& o) { o.regression.ridge = ridge; }),
                      ContainsSubstring("ContinuousMemory: ridge is"));
  for (const double padding : {-0.1, double(NAN)})
    CHECK_THROWS_WITH(make([&](auto& o) { o.regression.padding = padding; }),
                      ContainsSubstring("ContinuousMemory: padding is"));
  CHECK_THROWS_WITH(Memory<double>(options<Memory<double>>(4, 2, 3, 5), {6, {0.1}}, density(7)),
                    "ContinuousMemory: the density has 7 functions, the basis expects 6");
  const Slots<double> five(5), six(6);
  CHECK_THROWS_WITH(
      Gibbs<double>(options<Gibbs<double>>(4, 2, 3, 5), five, fw::GibbsDensity<double>(six)),
      "ContinuousMemory: the density has 6 functions, the basis expects 5");
}

TEST_CASE("chunks of wrong sizes throw and leave the state unchanged", "[continuous]") {
  const auto m = memory<StickySampling>(4, 2, 3, 5, 6);
  fw::Random random(8);
  auto state = fw::testing::random_state(m, 3, random);
  const auto before = state;
  const MatrixXd x = random_matrix(4, 3, random), tall = random_matrix(5, 3, random);
  const MatrixXd u = MatrixXd::Zero(1, 5), few = MatrixXd::Zero(1, 4), none(4, 0);
  MatrixXd y = MatrixXd::Ones(4, 3), wide = MatrixXd::Ones(4, 4);
  CHECK_THROWS_WITH(fw::write(m, state, {tall, u}),
                    "ContinuousMemory: signal has 5 rows, the memory expects 4");
  CHECK_THROWS_WITH(fw::write(m, state, {x, few}),
                    "ContinuousMemory: draws has 4 columns, the memory expects 5");
  CHECK_THROWS_WITH(fw::write(m, state, {none, u}),
                    ContainsSubstring("ContinuousMemory: signal has 0 columns"));
  CHECK_THROWS_WITH(fw::read(m, state, {tall}, {y}),
                    "ContinuousMemory: query has 5 rows, the memory expects 4");
  CHECK_THROWS_WITH(fw::read(m, state, {x}, {wide}),
                    "ContinuousMemory: output has 4 columns, the rest of the chunk expects 3");
  auto other = fw::initial_state(memory<StickySampling>(4, 2, 3, 5, 7));
  CHECK_THROWS_WITH(fw::write(m, other, {x, u}),
                    "ContinuousMemory: coefficients has 7 columns in the state, the memory "
                    "expects 6");
  CHECK(laws::difference(state, before) == 0);
  CHECK((y.array() == 1).all());
}

TEST_CASE("checkpoints can be reused for memories of other sizes", "[continuous]") {
  using M = Memory<double, StickySampling>;
  fw::Checkpoints<M> checkpoints;
  for (const Index d : {2, 6, 4}) {
    const M m = memory<StickySampling>(d, 2, d + 1, 5, 6);
    fw::Random random(9);
    auto all = fw::testing::random_sequences(m, 5, random);
    auto dinputs = all.inputs;
    auto dqueries = all.queries;
    fw::set_zero(dinputs);
    fw::set_zero(dqueries);
    auto again_inputs = dinputs;
    auto again_queries = dqueries;
    const auto dy = all.queries.query;
    const auto run = [&](fw::Checkpoints<M>& c, auto& di, auto& dq) {
      auto state = fw::initial_state(m);
      auto ds = fw::zero_gradient(m);
      fw::scan(m, state, fw::view<fw::WriteSequence<M>>(all.inputs),
               fw::view<fw::ReadSequence<M>>(all.queries), {all.outputs.output}, c);
      fw::backward(m, c, fw::view<fw::WriteSequence<M>>(all.inputs),
                   fw::view<fw::ReadSequence<M>>(all.queries), {dy}, ds,
                   fw::view<fw::WriteGradSequence<M>>(di), fw::view<fw::ReadGradSequence<M>>(dq));
    };
    run(checkpoints, dinputs, dqueries);
    fw::Checkpoints<M> new_checkpoints;
    run(new_checkpoints, again_inputs, again_queries);
    CHECK(dinputs.signal == again_inputs.signal);
    CHECK(dqueries.query == again_queries.query);
  }
}

}  // namespace
