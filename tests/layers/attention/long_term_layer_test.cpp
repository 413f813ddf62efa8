#include "layers/attention/long_term_checks.hpp"

namespace {

using namespace long_term_checks;

TEST_CASE("LongTermLayer: keys and values are projections of the coefficients",
          "[layers][long_term]") {
  using L = fw::LongTermLayer<Memory<double>>;
  L layer({.heads = 2, .outputs = 5}, memory<double>(), {});
  fw::Random random(2);
  fw::initialise(layer, random);
  const Matrix<double> x = random_matrix(6, 8, random), q = random_matrix(6, 3, random);
  const Run<L> run(layer, x, q, Matrix<double>());
  const Matrix<double> k = layer.key.weight * run.state.coefficients,
                       v = layer.value.weight * run.state.coefficients;
  Matrix<double> context(6, 3);
  Eigen::VectorXd r(7);
  for (Index h = 0; h < 6; h += 3)
    for (Index i = 0; i < 3; ++i) {
      const Eigen::VectorXd s =
          k.middleRows(h, 3).transpose() * q.col(i).segment(h, 3) / std::sqrt(3.0);
      layer.density.expect(layer.memory.basis(), s,
                           layer.density.mixture_of(layer.memory.basis(), s), r);
      context.col(i).segment(h, 3) = v.middleRows(h, 3) * r;
    }
  CHECK(relative_difference(run.out, layer.output.weight * context) <= 1e-13);
  CHECK(layer_checks::parameter_names(layer) ==
        "key.weight\nvalue.weight\noutput.weight\n"
        "density.components.mean_weight\ndensity.components.mean_bias\n"
        "density.components.variance_weight\ndensity.components.variance_bias\n");
}

TEST_CASE("LongTermLayer: the random draws determine the sampled positions",
          "[layers][long_term]") {
  using L = fw::LongTermLayer<Memory<double, fw::StickySampling>>;
  L layer({.heads = 2}, memory<double, fw::StickySampling>(), {});
  fw::Random random(3);
  fw::initialise(layer, random);
  const Matrix<double> x = random_matrix(6, 8, random), q = random_matrix(6, 3, random);
  CHECK(layer.draws() == 5);
  const Run<L> a(layer, x, q, Matrix<double>::Constant(1, 5, 0.2)),
      b(layer, x, q, Matrix<double>::Constant(1, 5, 0.2)),
      c(layer, x, q, Matrix<double>::Constant(1, 5, 0.8));
  CHECK(a.out == b.out);
  CHECK(a.state.coefficients == b.state.coefficients);
  CHECK(relative_difference(c.state.coefficients, a.state.coefficients) > 1e-3);
  // Part of the density lies outside of the histogram.
  CHECK((a.state.histogram.sum() > 1 && a.state.histogram.sum() < 2 * 3));
  CHECK((fw::LongTermLayer<Memory<double>>({}, memory<double>(), {}).draws() == 0));
}

// A user's layer with long-term attention alone: every chunk first reads the memory and is then
// written to it.
struct Recaller {
  using Long = fw::LongTermLayer<Memory<float>>;
  fw::detail::LinearMap<float> query{6, 6};
  Long recall{{.heads = 2}, memory<float>(), {}};
  static constexpr auto names = fw::names("query", "recall");

  void forward(Long::State& state, fw::Input<float> x, fw::Output<float> y) const {
    Long::Trace trace;
    const Matrix<float> queries = query.weight * x;
    recall.read(state, queries, y, trace);
    recall.write(state, x, trace);
  }
};

TEST_CASE("LongTermLayer: in a user's host layer", "[layers][long_term]") {
  Recaller host;
  fw::Random random(4);
  fw::initialise(host, random);
  CHECK(fw::parameter_count(host) == 36 + 3 * 36 + 2 * (7 + 1));
  auto state = host.recall.initial_state();
  const Matrix<float> x = random_matrix(6, 4, random).cast<float>();
  Matrix<float> y = Matrix<float>::Constant(6, 4, NAN);
  host.forward(state, x, y);
  CHECK(y.isZero(0));
  host.forward(state, x, y);
  CHECK(y.allFinite());
  CHECK(!y.isZero(1e-4f));
}

TEST_CASE("LongTermLayer: wrong sizes are refused by name and change nothing",
          "[layers][long_term]") {
  using L = fw::LongTermLayer<Memory<double, fw::StickySampling>, fw::AffineGate<double>>;
  const auto m = memory<double, fw::StickySampling>();
  CHECK_THROWS_WITH(L({.heads = 4}, m, fw::AffineGate<double>(4)),
                    "LongTermLayer: d is 6, expected a multiple of 4 heads");
  CHECK_THROWS_WITH(L({.heads = 0}, m, fw::AffineGate<double>(4)),
                    "LongTermLayer: heads is 0, expected at least 1");
  CHECK_THROWS_WITH(L({.heads = 2, .outputs = -1}, m, fw::AffineGate<double>(4)),
                    Catch::Matchers::ContainsSubstring("is -1, expected at least 1"));
  CHECK_THROWS_WITH(L({.heads = 2, .kl = {.sigma0 = 0}}, m, fw::AffineGate<double>(4)),
                    "LongTermLayer: kl.sigma0 is 0, expected above 0");
  using Gated = fw::LongTermLayer<Memory<double, fw::StickySampling>, fw::ConvGate<double>>;
  CHECK_THROWS_WITH(Gated({.heads = 2}, m, fw::ConvGate<double>(3)),
                    "LongTermLayer: the gate has 3 rows, the memory expects 6");
  const L layer({.heads = 2, .outputs = 5}, m, fw::AffineGate<double>(4));
  fw::Random random(5);
  Matrix<double> x = random_matrix(6, 4, random), tall = random_matrix(7, 4, random),
                 longer = random_matrix(6, 5, random), none(6, 0), y(5, 4), dx(6, 4);
  const Matrix<double> u = Matrix<double>::Constant(1, 5, 0.5), few = u.leftCols(4);
  typename L::Trace trace;
  auto state = layer.initial_state();
  layer.write(state, x, trace, fw::Pass::infer, u);
  layer.read(state, x, y, trace);
  const auto before = state;
  const auto train = fw::Pass::train;
  CHECK_THROWS_WITH(layer.write(state, tall, trace, train, u),
                    "LongTermLayer: x has 7 rows, the layer expects 6");
  CHECK_THROWS_WITH(layer.write(state, none, trace, train, u),
                    "LongTermLayer: x has no tokens, the layer expects at least 1");
  CHECK_THROWS_WITH(layer.write(state, longer, trace, train, u),
                    "AffineGate: x has 5 columns, the gate expects 4");
  CHECK_THROWS_WITH(layer.write(state, x, trace, train, few),
                    "ContinuousMemory: draws has 4 columns, the memory expects 5");
  CHECK_THROWS_WITH(layer.read(state, tall, y, trace),
                    "LongTermLayer: queries has 7 rows, the layer expects 6");
  CHECK_THROWS_WITH(layer.read(state, x, dx, trace),
                    "LongTermLayer: out has 6 rows, the layer expects 5");
  CHECK(state.coefficients == before.coefficients);
  CHECK(state.histogram == before.histogram);
  CHECK(state.tokens == before.tokens);

  L grad = fw::zero_gradient(layer);
  auto dstate = fw::zero_gradient(m);
  CHECK_THROWS_WITH(layer.read_backward(x, trace, y, dx, dstate, grad),
                    "LongTermLayer: queries has 4 columns, the sequence expects 0");
  CHECK_THROWS_WITH(layer.write_backward(x, trace, dstate, dx, grad),
                    "LongTermLayer: x has 4 columns, the sequence expects 0");
  layer.write(state, x, trace, train, u);
  layer.read(state, x, y, trace, train);
  auto narrow = dstate;
  narrow.coefficients.setZero(6, 3);
  CHECK_THROWS_WITH(layer.read_backward(x, trace, y, dx, narrow, grad),
                    "LongTermLayer: coefficients has 3 columns in the state, the memory expects 7");
  CHECK_THROWS_WITH(layer.write_backward(x, trace, narrow, dx, grad),
                    "LongTermLayer: coefficients has 3 columns in the state, the memory expects 7");
  CHECK_THROWS_WITH(layer.read_backward(x, trace, x, dx, dstate, grad),
                    "LongTermLayer: dout has 6 rows, the layer expects 5");
  L other({.heads = 2, .outputs = 4}, m, fw::AffineGate<double>(4));
  CHECK_THROWS_WITH(layer.read_backward(x, trace, y, dx, dstate, other),
                    Catch::Matchers::ContainsSubstring("LongTermLayer: the parameters of grad"));
  CHECK(layer_checks::same_parameters(grad, layer));
  CHECK(dstate.coefficients.isZero(0));
}

}  // namespace
