#include "networks/long_term_checks.hpp"

namespace {

using namespace long_term;

TEST_CASE("long-term attention with a continuous memory", "[networks]") { check(Kind::even); }
TEST_CASE("long-term attention with sticky samples", "[networks]") { check(Kind::sticky); }
// The output is that of the long-term memory alone.
TEST_CASE("a chunk is written once it has left the window", "[networks]") {
  const Net network = network_of(d, alone(Kind::even));
  fw::Random random(5);
  constexpr Index steps = 15;
  const Matrix<double> x = random_matrix(d, steps, random);
  const auto whole = [&](const Matrix<double>& in) {
    State state = network.initial_state();
    Net::Trace trace;
    return run(network, state, in, trace);
  };
  const Matrix<double> y = whole(x);
  CHECK(y.leftCols(window + chunk - 1).isZero(0));  // before the first write
  for (Index at = 0; at < steps; ++at) {
    Matrix<double> other = x;
    other.col(at) += random_matrix(d, 1, random);
    const Matrix<double> changed = whole(other);
    const Index first_reader = at / chunk * chunk + chunk - 1 + window;
    for (Index t = 0; t < steps; ++t) {
      INFO("token " << at << " changed, output " << t);
      if (t == at) continue;  // another query
      if (t < first_reader)
        CHECK(changed.col(t) == y.col(t));
      else
        CHECK((changed.col(t) - y.col(t)).norm() > 1e-6 * y.col(t).norm());
    }
  }
}

TEST_CASE("joined attention is the sum or the mix of both memories", "[networks]") {
  Net network = network_of(d, joined(Kind::even, Join::alpha));
  fw::Random random(6);
  const Matrix<double> x = random_matrix(d, 12, random);
  const auto with_mix = [&](double mix) {
    weight(network, "mix")(0) = mix;
    State state = network.initial_state();
    Net::Trace trace;
    return run(network, state, x, trace);
  };
  const Matrix<double> far = with_mix(800), near = with_mix(-800);
  check_equal(with_mix(0), 0.5 * (near + far), 1e-14);
  check_equal(with_mix(std::log(3)), 0.25 * near + 0.75 * far, 1e-14);
  Net sum = network_of(d, joined(Kind::even));
  for (auto& each : sum.weights) each.value = weight(network, each.name);
  State state = sum.initial_state();
  Net::Trace trace;
  check_equal(run(sum, state, x, trace), near + far, 1e-14);
}

TEST_CASE("a seed determines the draws of a long-term memory", "[networks]") {
  const Net network = network_of(d, joined(Kind::sticky));
  fw::Random random(7);
  const Matrix<double> x = random_matrix(d, 20, random);
  const auto with_seed = [&](std::uint64_t seed) {
    State state = network.initial_state();
    fw::seed_draws(state, seed);
    Net::Trace trace;
    return run(network, state, x, trace);
  };
  CHECK(with_seed(1) == with_seed(1));
  CHECK(with_seed(1) != with_seed(2));
}

// The penalty is in the gradients: by differences of the loss with the penalty.
TEST_CASE("the penalty of densities has its gradient", "[networks]") {
  const auto f = [](const Value<double>& x) {
    return attend(Kind::penalised, x, linear(x, "query", d), "long_term", {window, chunk});
  };
  Net network = network_of(d, f);
  CHECK_THROWS_WITH(network.state_gradient(), ContainsSubstring("takes no gradient of its state"));
  fw::Random random(8);
  const Matrix<double> x = random_matrix(d, 13, random), dy = Matrix<double>::Zero(d, 13);
  Net::Trace trace;
  const auto penalty = [&] {
    State state = network.initial_state();
    run(network, state, x, trace, fw::Pass::train);
    return network.penalty(trace);
  };
  CHECK(penalty() > 0);
  State state = network.initial_state();
  const Net grad = train(network, state, x, dy, trace).grad;
  for (std::size_t w = 0; w < network.weights.size(); ++w) {
    INFO(network.weights[w].name);
    auto& value = network.weights[w].value;
    Matrix<double> expected(value.rows(), value.cols());
    for (Index i = 0; i < value.size(); ++i) {
      const double kept = value.data()[i], h = 1e-4;
      const auto at = [&](double offset) {
        value.data()[i] = kept + offset;
        return penalty();
      };
      expected.data()[i] =
          (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);  // fourth order
      value.data()[i] = kept;
    }
    check_equal(grad.weights[w].value, expected, 1e-9);
  }
}

TEST_CASE("the means of a mixture start apart", "[networks]") {
  Builder<double> builder;
  Net mixture = builder.build(alone(Kind::even)(builder.input(d)));
  fw::Random random(3);
  fw::initialise(mixture, random);
  const Matrix<double>& bias = weight(mixture, "long_term.density.components.mean_bias");
  CHECK(bias(0) == Catch::Approx(std::log(1.0 / 3)));
  CHECK(bias(1) == Catch::Approx(std::log(3.0)));
}

TEST_CASE("long-term attention refuses what does not fit", "[networks]") {
  Builder<double> builder;
  const auto x = builder.input(d);
  CHECK_THROWS_WITH(attend(Kind::even, linear(x, "five", 5), x, "long", {1, 1}),
                    ContainsSubstring("long: an input has 5 rows"));

  const Net network = network_of(d, alone(Kind::even));
  State state = network.initial_state();
  Net::Trace trace;
  Matrix<double> in = Matrix<double>::Ones(d, 9);
  run(network, state, in, trace);
  set_number(state, "long_term.streams.0.tokens", 3);  // before the first write
  const Matrix<double> before = numbers_of(state);
  CHECK_THROWS_WITH(run(network, state, in, trace),
                    ContainsSubstring("the number of tokens of the memory is 6 in the state"));
  CHECK(numbers_of(state) == before);
}

}  // namespace
