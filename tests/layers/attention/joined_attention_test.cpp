#include "layers/attention/joined_layers.hpp"

namespace {

using namespace joined_layers;

template <class Long> void check_splits() {
  const auto layer = random_layer<Relative<double>, Long>(Join::alpha);
  using L = std::remove_const_t<decltype(layer)>;
  fw::Random random(4);
  constexpr Index steps = 23;
  const Matrix<double> x = random_matrix(d, steps, random);
  const Matrix<double> expected = whole(layer, x, 7);
  typename L::Trace trace;
  for (Index first = 1; first < steps; ++first)
    for (const Index piece : {Index(1), Index(4), steps}) {
      Matrix<double> y = Matrix<double>::Constant(d, steps, NAN);
      auto state = layer.initial_state();
      state.seed = 7;
      for (Index t = 0, n = first; t < steps; t += n, n = std::min(piece, steps - t))
        layer.forward(state, x.middleCols(t, n), y.middleCols(t, n), trace,
                      piece == 4 ? fw::Pass::train : fw::Pass::infer);
      INFO("first " << first << ", then pieces of " << piece);
      CHECK(relative_difference(y, expected) <= 1e-13);
      CHECK(state.tokens == steps);
      CHECK(state.written == (steps - window) / chunk * chunk);
    }
}

TEST_CASE("JoinedAttention: any split of a sequence", "[layers][joined]") {
  check_splits<Even<double>>();
  check_splits<Sticky<double>>();
  check_splits<Compressive<double>>();
}

// The long-term output alone: the output of the short-term layer is 0.
TEST_CASE("JoinedAttention: a chunk is written once it has left the window", "[layers][joined]") {
  auto layer = random_layer<Relative<double>, Even<double>>();
  layer.short_term.output.weight.setZero();
  layer.short_term.output.bias.setZero();
  fw::Random random(5);
  constexpr Index steps = 15;
  const Matrix<double> x = random_matrix(d, steps, random);
  const Matrix<double> y = whole(layer, x);
  // Before the first write the output is 0.
  CHECK(y.leftCols(window + chunk - 1).isZero(0));
  for (Index at = 0; at < steps; ++at) {
    Matrix<double> other = x;
    other.col(at) += random_matrix(d, 1, random);
    const Matrix<double> changed = whole(layer, other);
    const Index last_of_chunk = at / chunk * chunk + chunk - 1;
    const Index first_reader = last_of_chunk + window;
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

TEST_CASE("JoinedAttention: the output is the sum or the mix of both memories",
          "[layers][joined]") {
  fw::Random random(6);
  const Matrix<double> x = random_matrix(d, 12, random);
  auto layer = random_layer<Relative<double>, Even<double>>(Join::alpha);
  auto only_long = layer, only_short = layer;
  only_long.mix[0] = 800;
  only_short.mix[0] = -800;
  const Matrix<double> long_out = whole(only_long, x), short_out = whole(only_short, x);
  layer.mix[0] = 0;
  CHECK(relative_difference(whole(layer, x), 0.5 * (short_out + long_out)) <= 1e-14);
  layer.mix[0] = std::log(3);
  CHECK(relative_difference(whole(layer, x), 0.25 * short_out + 0.75 * long_out) <= 1e-14);
  auto sum = layer;
  sum.mix.resize(0);
  CHECK(relative_difference(whole(sum, x), short_out + long_out) <= 1e-14);
  CHECK(joined<Relative<double>, Even<double>>().mix.size() == 0);
}

TEST_CASE("JoinedAttention: the seed determines the random draws", "[layers][joined]") {
  const auto layer = random_layer<Relative<double>, Sticky<double>>();
  fw::Random random(7);
  const Matrix<double> x = random_matrix(d, 20, random);
  CHECK(whole(layer, x, 1) == whole(layer, x, 1));
  CHECK(whole(layer, x, 1) != whole(layer, x, 2));
}

TEST_CASE("JoinedAttention: a short-term layer whose outputs and inputs differ in size",
          "[layers][joined]") {
  using Long = Even<double>;
  const auto memory = long_term<Long>().memory;
  using L = fw::JoinedAttention<fw::Linear<double>, Long>;
  using Z = fw::JoinedAttention<fw::Linear<Complex>, Even<Complex>>;
  const auto complex_memory = long_term<Even<Complex>>().memory;
  layer_checks::check_layer(
      L({d, 6}, Long({.heads = 2, .outputs = 6}, memory, {}), 1, chunk),
      Z({d, 6}, Even<Complex>({.heads = 2, .outputs = 6}, complex_memory, {}), 1, chunk), {1, 7});
}

TEST_CASE("JoinedAttention: parts that do not fit are refused by name", "[layers][joined]") {
  using Catch::Matchers::ContainsSubstring;
  using Long = Even<double>;
  using L = fw::JoinedAttention<fw::Linear<double>, Long>;
  const auto long_layer = long_term<Long>();
  CHECK_THROWS_WITH(L({d, d}, long_layer, 0, 1),
                    "JoinedAttention: window is 0, expected at least 1");
  CHECK_THROWS_WITH(L({d, d}, long_layer, 1, 0),
                    "JoinedAttention: chunk is 0, expected at least 1");
  CHECK_THROWS_WITH(L({5, d}, long_layer, 1, 1),
                    ContainsSubstring("JoinedAttention: the long-term memory has 4 rows"));
  CHECK_THROWS_WITH(L({d, 5}, long_layer, 1, 1),
                    ContainsSubstring("JoinedAttention: the long-term output has 4 rows"));
  const L layer({d, d}, long_layer, 3, 2);
  auto state = L({d, d}, long_layer, 3, 1).initial_state();
  const auto before = state;
  Matrix<double> x = Matrix<double>::Ones(d, 9), y = x;
  L::Trace trace;
  CHECK_THROWS_WITH(layer.forward(state, x, y, trace),
                    "JoinedAttention: state.recent has 4 columns, the sequence expects 5");
  CHECK(state.tokens == 0);
  CHECK(state.recent == before.recent);
  state = layer.initial_state();
  state.seed = -1;
  CHECK_THROWS_WITH(layer.forward(state, x, y, trace),
                    Catch::Matchers::ContainsSubstring(
                        "JoinedAttention: seed is -1 in the state, expected 0 to "));
  CHECK(state.tokens == 0);
  CHECK((y.array() == 1).all());
}

}  // namespace
