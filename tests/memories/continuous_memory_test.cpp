#include <fastweights/continuous/components.hpp>
#include <fastweights/continuous/density.hpp>
#include <fastweights/continuous/ridge.hpp>
#include <thread>

#include "support/catch.hpp"
#include "support/reductions.hpp"

/// \file
/// The ∞-former's memory: its equations, many writes, and threads. What needs its type is in
/// continuous_operators_test.cpp.

namespace {

using Catch::Matchers::ContainsSubstring;
using Eigen::MatrixXd;
using fw::Index;
using laws::leaf;
using Memory = fw::AnyMemory<double>;
using State = fw::AnyState<double>;
using More = std::map<std::string, double>;

// Of 6 functions, 5 samples, 2 heads and chunks of 3, unless `more` has others.
fw::MemoryOptions options(Index d, More more = {}) {
  more.insert({{"heads", 2}, {"chunk", 3}, {"samples", 5}, {"functions", 6}});
  return {d, d, more};
}
Memory even(Index d, More more = {}) {
  return fw::make_memory<double>("ContinuousMemory", options(d, std::move(more)));
}
Memory sticky(Index d, More more = {}) {
  return fw::make_memory<double>("StickyContinuousMemory", options(d, std::move(more)));
}

MatrixXd random_matrix(Index rows, Index cols, fw::Random& random) {
  MatrixXd m(rows, cols);
  random.fill(m);
  return m;
}
double apart(const MatrixXd& a, const MatrixXd& b) {
  return largest_entry(a - b) / std::max(1e-300, b.cwiseAbs().maxCoeff());
}

// Facts of a memory beside its options: the basis and density of the table.
struct Parts {
  fw::GaussianBasis<double> basis;
  fw::MixtureDensity<double, fw::LearnedComponents<double>> density;

  explicit Parts(Index functions)
      : basis(functions, {0.1, 0.3}),
        density{fw::LearnedComponents<double>(functions, 1, true, 1e-3)} {
    fw::Random random(5);
    density.components.initialise(random);
    density.components.variance_bias.setConstant(-3);
  }
};

struct Case {
  Index d, heads, samples, functions;
  double tau;
  fw::Regression regression;
};

// Compares writes of these lengths, and a read after each, with the header's equations.
void check_definition(const Case& c, const std::vector<Index>& lengths) {
  const auto m = even(c.d, {{"heads", c.heads},
                            {"chunk", 1},
                            {"samples", c.samples},
                            {"functions", c.functions},
                            {"tau", c.tau},
                            {"ridge", c.regression.ridge},
                            {"padding", c.regression.padding},
                            {"parity", c.regression.parity}});
  const Parts parts(c.functions);
  fw::Random random(1);
  State state = m.initial_state();
  MatrixXd b = MatrixXd::Zero(c.d, c.functions);
  Index tokens = 0;
  for (const Index length : lengths) {
    const MatrixXd x = random_matrix(c.d, length, random), q = random_matrix(c.d, length, random);
    MatrixXd y = MatrixXd::Constant(c.d, length, NAN), expected(c.d, length);
    m.write(state, {x});
    const double share = double(tokens) / double(tokens + length);
    const double tau = tokens > 0 && c.tau > 0 ? c.tau : share;
    const Index past = tokens > 0 ? c.samples : 0;
    const bool parity = c.regression.parity;
    const auto to = parity ? fw::detail::published_positions(past, length, tau)
                           : fw::detail::cell_centres(past, length, tau, c.regression.padding);
    const auto g = fw::ridge_operator(parts.basis, to, c.regression.ridge);
    std::vector<double> at;
    for (Index i = 0; i < past; ++i) at.push_back((double(i) + (parity ? 1 : 0.5)) / double(past));
    if (past > 0) b = b * fw::detail::basis_at(parts.basis, at) * g.past + x * g.new_tokens;
    if (past == 0) b = x * g.new_tokens;
    tokens += length;
    INFO("L " << length << ", N " << b.cols() << ", M " << c.samples);
    CHECK(apart(leaf(state, "coefficients"), b) <= 1e-11);
    CHECK(laws::counter(state.object(), "tokens") == tokens);

    m.read(state, {q}, {y});
    const Index rows = c.d / c.heads;
    Eigen::VectorXd r(b.cols());
    for (Index i = 0; i < length; ++i)
      for (Index h = 0; h < c.d; h += rows) {
        const Eigen::VectorXd s =
            b.middleRows(h, rows).transpose() * q.col(i).segment(h, rows) / std::sqrt(double(rows));
        parts.density.expect(parts.basis, s, parts.density.mixture_of(parts.basis, s), r);
        expected.col(i).segment(h, rows) = b.middleRows(h, rows) * r;
      }
    CHECK(apart(y, expected) <= 1e-10);
  }
}

TEST_CASE("continuous memory writes and reads as defined, in chunks of any length",
          "[continuous]") {
  const std::vector<Index> lengths{3, 1, 8, 7, 40, 2, 2};
  for (const double tau : {0.0, 0.7})
    for (const auto& [d, heads, samples, functions] :
         std::vector<std::array<Index, 4>>{{4, 2, 5, 6}, {3, 1, 1, 5}, {1, 1, 9, 1}, {6, 6, 4, 7}})
      for (const auto& regression :
           {fw::Regression{0.1, 0.5, false}, {0.5, 0, false}, {0.3, 1.3, false}, {1, 0.5, true}})
        check_definition({d, heads, samples, functions, tau, regression}, lengths);
  // With an even share every write has its own operator, and more of them than the cache keeps.
  check_definition({2, 1, 4, 5, 0, {0.1, 0.5, false}}, std::vector<Index>(150, 2));
}

TEST_CASE("an empty continuous memory returns 0", "[continuous]") {
  const auto m = even(4);
  State state = m.initial_state();
  fw::Random random(2);
  const MatrixXd q = random_matrix(4, 3, random);
  MatrixXd y = MatrixXd::Constant(4, 3, NAN);
  m.read(state, {q}, {y});
  CHECK(y.isZero(0));
}

TEST_CASE("gradients of one chunk alone stop at each chunk", "[continuous]") {
  const auto past = even(4), chunk = even(4, {{"gradients_of_the_past", 0}});
  fw::Random random(3);
  const MatrixXd x = random_matrix(4, 6, random), q = random_matrix(4, 6, random),
                 dy = random_matrix(4, 6, random);
  const MatrixXd before = random_matrix(4, 3, random);
  State initial = past.initial_state();
  past.write(initial, {before});
  const auto gradients = [&](const Memory& m, const State& from, Index first, Index tokens,
                             State& ds, MatrixXd& dx, MatrixXd& dq) {
    m.backward(from, {x.middleCols(first, tokens)}, {q.middleCols(first, tokens)},
               {dy.middleCols(first, tokens)}, ds, {dx.middleCols(first, tokens)},
               {dq.middleCols(first, tokens)});
  };
  MatrixXd dx = MatrixXd::Zero(4, 6), dq = dx, cut_dx = dx, cut_dq = dx, full_dx = dx, full_dq = dx;
  State ds = past.zero_gradient(), cut_ds = ds, full_ds = ds;
  gradients(chunk, initial, 0, 6, ds, dx, dq);
  gradients(past, initial, 0, 6, full_ds, full_dx, full_dq);

  State first = initial;
  past.write(first, {x.leftCols(3)});
  gradients(past, first, 3, 3, cut_ds, cut_dx, cut_dq);
  leaf(cut_ds, "coefficients").setZero();
  gradients(past, initial, 0, 3, cut_ds, cut_dx, cut_dq);
  CHECK(apart(dx, cut_dx) <= 1e-14);
  CHECK(apart(dq, cut_dq) <= 1e-14);
  CHECK(leaf(ds, "coefficients").isZero(0));
  CHECK(apart(full_dx.rightCols(3), dx.rightCols(3)) <= 1e-14);
  CHECK(apart(full_dx.leftCols(3), dx.leftCols(3)) > 1e-3);
  CHECK(!leaf(full_ds, "coefficients").isZero(1e-3));
}

// The outputs of random tokens, from a state that continues.
MatrixXd outputs(const Memory& m, State& state, Index tokens, std::uint64_t seed) {
  fw::Random random(seed);
  auto all = fw::testing::random_sequences(m, tokens, random);
  fw::testing::scan(m, state, all);
  return all.outputs["output"];
}

TEST_CASE("resetting one of several states does not change the others", "[continuous]") {
  const auto m = sticky(4);
  std::vector<State> together(3, m.initial_state()), alone = together;
  for (std::size_t i = 0; i < 3; ++i) outputs(m, together[i], 4, i);
  outputs(m, alone[0], 4, 0);
  outputs(m, alone[2], 4, 2);
  together[1] = m.initial_state();
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(outputs(m, together[i], 4, 10 + i) == outputs(m, alone[i], 4, 10 + i));
    CHECK(together[i] == alone[i]);
  }
}

#ifdef NDEBUG
constexpr int many = 100000, thousands = 3000;
#else
constexpr int many = 2000, thousands = 200;  // Eigen without optimisation is 50 times slower
#endif

TEST_CASE("after very many writes the state converges and stays bounded", "[continuous]") {
  const auto chosen = options(2, {{"heads", 1}, {"samples", 8}, {"functions", 8}, {"tau", 0.75}});
  const auto m = fw::make_memory<double>("ContinuousMemory", chosen);
  const auto narrow = fw::make_memory<float>("ContinuousMemory", chosen);
  fw::Random random(5);
  const MatrixXd period = random_matrix(2, 9, random);
  const Eigen::MatrixXf rounded = period.cast<float>();
  State state = m.initial_state();
  auto float_state = narrow.initial_state();
  const auto go_on = [&] {  // one period
    for (Index i = 0; i < 9; i += 3) {
      m.write(state, {period.middleCols(i, 3)});
      narrow.write(float_state, {rounded.middleCols(i, 3)});
    }
  };
  for (int i = 0; i < many / 3; ++i) go_on();
  const MatrixXd last = leaf(state, "coefficients");
  CHECK(last.allFinite());
  CHECK(last.norm() <= 10 * period.norm());
  CHECK(last.norm() >= 1e-3 * period.norm());
  CHECK(apart(leaf(float_state, "coefficients").cast<double>(), last) <= 1e-5);
  go_on();
  CHECK(apart(leaf(state, "coefficients"), last) <= 1e-13);
  CHECK(laws::counter(state.object(), "tokens") == 9 * (many / 3 + 1));
}

TEST_CASE("a constant signal stays constant over thousands of writes", "[continuous]") {
  for (const double tau : {0.75, 0.0}) {
    const fw::MemoryOptions chosen{1,
                                   1,
                                   {{"chunk", 4},
                                    {"samples", 16},
                                    {"functions", 9},
                                    {"tau", tau},
                                    {"ridge", 1e-6},
                                    {"padding", 0},
                                    {"narrow", 0.2},
                                    {"wide", 0.2}}};
    const auto m = fw::make_memory<double>("ContinuousMemory", chosen);
    const auto narrow = fw::make_memory<float>("ContinuousMemory", chosen);
    const fw::GaussianBasis<double> basis(9, {0.2});
    const MatrixXd x = MatrixXd::Constant(1, 4, 0.7);
    const Eigen::MatrixXf rounded = x.cast<float>();
    State state = m.initial_state();
    auto float_state = narrow.initial_state();
    for (int i = 0; i < thousands; ++i) {
      m.write(state, {x});
      narrow.write(float_state, {rounded});
    }
    const MatrixXd psi =
        fw::detail::basis_at(basis, fw::detail::cell_centres(0, 50, 0, 0).new_tokens);
    const MatrixXd signal = leaf(state, "coefficients") * psi;
    const MatrixXd float_signal = leaf(float_state, "coefficients").cast<double>() * psi;
    INFO("tau " << tau << ": signal from " << signal.minCoeff() << " to " << signal.maxCoeff()
                << ", in float from " << float_signal.minCoeff() << " to "
                << float_signal.maxCoeff());
    CHECK(largest_entry(signal.array() - 0.7) <= 0.03);
    // A fixed contraction forgets rounding errors of old writes. An even one forgets nothing: about
    // 4e-7 per write, depending on the instruction set, adds up over thousands of writes.
    const double rounding = tau > 0 ? 1e-3 : std::max(1e-3, 1e-6 * thousands);
    CHECK(largest_entry(float_signal - signal) <= rounding);
  }
}

TEST_CASE("threads that share a memory compute the same as one thread", "[continuous]") {
  const auto m = sticky(4);
  const auto run = [](const Memory& memory, std::uint64_t seed) {
    State state = memory.initial_state();
    return outputs(memory, state, 40, seed);
  };
  std::vector<MatrixXd> serial, together(4);
  for (std::uint64_t i = 0; i < 4; ++i) serial.push_back(run(m, i));
  for (int round = 0; round < 3; ++round) {
    const auto shared = sticky(4);  // its cache is empty
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; ++i)
      threads.emplace_back([&, i] { together[i] = run(shared, i); });
    for (auto& each : threads) each.join();
    for (std::size_t i = 0; i < 4; ++i) CHECK(together[i] == serial[i]);
  }
}

TEST_CASE("chunks of wrong sizes throw and leave the state unchanged", "[continuous]") {
  const auto m = sticky(4);
  fw::Random random(8);
  State state = m.initial_state();
  outputs(m, state, 3, 8);
  const State before = state;
  const MatrixXd x = random_matrix(4, 3, random), tall = random_matrix(5, 3, random);
  const MatrixXd u = MatrixXd::Zero(1, 5), few = MatrixXd::Zero(1, 4), none(4, 0);
  MatrixXd y = MatrixXd::Ones(4, 3), wide = MatrixXd::Ones(4, 4);
  CHECK_THROWS_WITH(m.write(state, {tall, u}),
                    "ContinuousMemory: signal has 5 rows, the memory expects 4");
  CHECK_THROWS_WITH(m.write(state, {x, few}),
                    "ContinuousMemory: draws has 4 columns, the memory expects 5");
  CHECK_THROWS_WITH(m.write(state, {none, u}),
                    ContainsSubstring("ContinuousMemory: signal has 0 columns"));
  CHECK_THROWS_WITH(m.read(state, {tall}, {y}),
                    "ContinuousMemory: query has 5 rows, the memory expects 4");
  CHECK_THROWS_WITH(m.read(state, {x}, {wide}),
                    "ContinuousMemory: output has 4 columns, the rest of the chunk expects 3");
  State other = sticky(4, {{"functions", 7}}).initial_state();
  CHECK_THROWS_WITH(m.write(other, {x, u}),
                    "ContinuousMemory: coefficients has 7 columns in the state, the memory "
                    "expects 6");
  CHECK(state == before);
  CHECK((y.array() == 1).all());
}

TEST_CASE("checkpoints can be reused for memories of other sizes", "[continuous]") {
  fw::AnyCheckpoints<double> used;
  for (const Index d : {2, 6, 4}) {
    const auto m = sticky(d, {{"chunk", double(d + 1)}});
    fw::Random random(9);
    const auto all = fw::testing::random_sequences(m, 5, random);
    const auto run = [&](fw::AnyCheckpoints<double>& checkpoints) {
      auto own = all, d_all = all;
      for (auto* record : {&d_all.inputs, &d_all.queries})
        for (auto& matrix : record->matrices) matrix.setZero();
      State state = m.initial_state(), ds = m.zero_gradient();
      m.scan(state, own.inputs.views(), own.queries.views(), own.outputs.views<double>(),
             checkpoints);
      m.backward(checkpoints, own.inputs.views(), own.queries.views(), own.queries.views(), ds,
                 d_all.inputs.views<double>(), d_all.queries.views<double>());
      return d_all;
    };
    fw::AnyCheckpoints<double> fresh;
    const auto a = run(used), b = run(fresh);
    CHECK(a.inputs.matrices == b.inputs.matrices);
    CHECK(a.queries.matrices == b.queries.matrices);
    CHECK(a.queries["query"].norm() > 0);
  }
}

}  // namespace
