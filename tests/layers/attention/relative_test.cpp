#include <fastweights/layers/attention/relative_attention.hpp>

#include "support/layer_checks.hpp"
#include "support/sizes.hpp"

using fw::Index;
using layer_checks::check_layer;
using layer_checks::Complex;
using layer_checks::Matrix;
using layer_checks::parameter_names;
using layer_checks::random_matrix;
using layer_checks::relative_difference;

namespace {

template <class S> using Attention = fw::RelativeAttention<S>;
using Options = fw::RelativeAttentionOptions;

Attention<double> random_layer(const Options& options) {
  Attention<double> layer(options);
  fw::Random random(3);
  layer_checks::randomise(layer, random);
  return layer;
}

template <class S> Matrix<S> whole(const Attention<S>& layer, const Matrix<S>& x) {
  Matrix<S> y = Matrix<S>::Constant(x.rows(), x.cols(), S(NAN));
  auto state = layer.initial_state();
  typename Attention<S>::Trace trace;
  layer.forward(state, x, y, trace);
  return y;
}

// The paper's encoding of a distance: sines, then cosines.
Eigen::VectorXd encoding(Index distance, Index d) {
  Eigen::VectorXd sines((d + 1) / 2), cosines((d + 1) / 2), all(d);
  for (Index i = 0; i < sines.size(); ++i) {
    const double angle = static_cast<double>(distance) /
                         std::pow(10000.0, 2 * static_cast<double>(i) / static_cast<double>(d));
    sines[i] = std::sin(angle);
    cosines[i] = std::cos(angle);
  }
  all << sines, cosines.head(d / 2);
  return all;
}

Eigen::VectorXd apply(const fw::Linear<double>& projection, const Eigen::VectorXd& x) {
  Eigen::VectorXd y = projection.weight * x;
  if (projection.bias.size() > 0) y += projection.bias;
  return y;
}

// The equation, one score at a time.
Matrix<double> by_definition(const Attention<double>& layer, const Matrix<double>& x) {
  const Index d = x.rows(), size = d / layer.heads;
  Matrix<double> y(d, x.cols());
  for (Index i = 0; i < x.cols(); ++i) {
    const Index first = std::max<Index>(0, i + 1 - layer.window());
    const Eigen::VectorXd q = apply(layer.query, x.col(i));
    Eigen::VectorXd head_outputs = Eigen::VectorXd::Zero(d);
    for (Index h = 0; h < d; h += size) {
      double total = 0;
      for (Index j = first; j <= i; ++j) {
        const Eigen::VectorXd k = apply(layer.key, x.col(j)), v = apply(layer.value, x.col(j));
        const Eigen::VectorXd r = apply(layer.position, encoding(i - j, d));
        double score = 0;
        for (Index c = h; c < h + size; ++c)
          score += (q[c] + layer.content_bias[c]) * k[c] + (q[c] + layer.position_bias[c]) * r[c];
        const double weight = std::exp(score / std::sqrt(static_cast<double>(size)));
        head_outputs.segment(h, size) += weight * v.segment(h, size);
        total += weight;
      }
      head_outputs.segment(h, size) /= total;
    }
    y.col(i) = apply(layer.output, head_outputs);
  }
  return y;
}

template <class F> void for_each_buffer(Attention<double>::Trace& t, const F& f) {
  for (auto* buffer :
       {&t.tokens, &t.keys, &t.values, &t.position_keys, &t.content_queries, &t.position_queries,
        &t.weights, &t.position_scores, &t.head_outputs, &t.dkeys, &t.dvalues, &t.dposition_keys,
        &t.dcontent_queries, &t.dposition_queries, &t.dweights, &t.dhead_outputs})
    f(*buffer);
  f(t.step_buffer);
}

}  // namespace

TEST_CASE("RelativeAttention: the equation, one score at a time", "[layers]") {
  fw::Random random(1);
  for (const Options& o : {Options{6, 2, 4, false}, Options{6, 2, 4, true}, Options{7, 1, 5, true},
                           Options{5, 5, 40, true}, Options{1, 1, 3, false}, Options{4, 2, 1, true},
                           Options{12, 3, 70, false}, Options{12, 3, 200, true}})
    for (Index steps : {1, 2, 4, 5, 17, 64, 65, 150}) {
      INFO("d_model " << o.d_model << ", window " << o.window << ", steps " << steps);
      const auto layer = random_layer(o);
      const Matrix<double> x = random_matrix(o.d_model, steps, random);
      CHECK(relative_difference(whole(layer, x), by_definition(layer, x)) <= 1e-13);
    }
}

TEST_CASE("RelativeAttention: gradients, streaming, refusals at odd sizes", "[layers]") {
  for (const Options& o :
       {Options{6, 2, 4, false}, Options{6, 2, 4, true}, Options{7, 1, 5, true},
        Options{5, 5, 12, true}, Options{3, 1, 2, false}, Options{6, 3, 40, true}})
    check_layer(Attention<double>(o), Attention<Complex>(o), {1, 2, 9});
}

TEST_CASE("RelativeAttention: gradients over several blocks of queries", "[layers]") {
  for (const Index window : sizes({3, 30, 67, 150}, {30})) {
    const Options o{6, 2, window, true};
    INFO("window " << window);
    layer_checks::check_gradients(random_layer(o), Attention<Complex>(o), 131);
  }
}

TEST_CASE("RelativeAttention: a window of one token gives W_o W_v x", "[layers]") {
  const auto layer = random_layer({6, 2, 1, true});
  fw::Random random(2);
  const Matrix<double> x = random_matrix(6, 70, random), dy = random_matrix(6, 70, random);
  Matrix<double> y(6, 70), values(6, 70), expected(6, 70), dx(6, 70), dvalues(6, 70),
      dexpected(6, 70);
  auto state = layer.initial_state();
  Attention<double>::Trace trace;
  fw::Nothing none;
  layer.forward(state, x, y, trace, fw::Pass::train);
  layer.value.forward(none, x, values, none);
  layer.output.forward(none, values, expected, none);
  CHECK(relative_difference(y, expected) <= 1e-14);

  Attention<double> grad = layer, two = layer;
  for (auto* each : {&grad, &two}) fw::set_zero_parameters(*each);
  layer.backward(x, trace, dy, dx, grad);
  layer.output.backward(values, none, dy, dvalues, two.output);
  layer.value.backward(x, none, dvalues, dexpected, two.value);
  CHECK(relative_difference(dx, dexpected) <= 1e-13);
  fw::for_each_parameter(
      [](const std::string& path, const auto& g, const auto& expected_g) {
        INFO(path);
        CHECK(largest_entry(g - expected_g) <= 1e-12);
      },
      grad, two);
}

TEST_CASE("RelativeAttention: any split of a sequence, in one trace", "[layers]") {
  fw::Random random(4);
  const Index steps = 200;
  const Matrix<double> x = random_matrix(12, steps, random);
  for (Index window : {1, 2, 33, 64, 65, 128, 300}) {
    const auto layer = random_layer({12, 3, window, true});
    const Matrix<double> expected = whole(layer, x);
    Attention<double>::Trace trace;
    for (const std::vector<Index>& pieces :
         std::vector<std::vector<Index>>{{1}, {3}, {64}, {1, 63, 2, 65}, {100, 1, 1}, {199, 1}})
      for (fw::Pass pass : {fw::Pass::infer, fw::Pass::train}) {
        INFO("window " << window << ", first piece " << pieces[0]);
        Matrix<double> y = Matrix<double>::Constant(12, steps, NAN);
        auto state = layer.initial_state();
        std::size_t piece = 0;
        for (Index t = 0, n = 0; t < steps; t += n) {
          n = std::min(pieces[piece++ % pieces.size()], steps - t);
          layer.forward(state, x.middleCols(t, n), y.middleCols(t, n), trace, pass);
        }
        CHECK(relative_difference(y, expected) <= 1e-13);
        CHECK(state.length == steps);
      }
  }
}

TEST_CASE("RelativeAttention: traces and outputs are written before they are read", "[layers]") {
  fw::Random random(5);
  for (Index window : {3, 90})
    for (Index steps : {1, 70}) {
      const auto layer = random_layer({6, 2, window, true});
      const Matrix<double> x = random_matrix(6, steps, random),
                           dy = random_matrix(6, steps, random);
      const Matrix<double> before = random_matrix(6, 5, random);
      Attention<double>::Trace trace;
      const auto run = [&](Matrix<double>& y, Matrix<double>& dx, Attention<double>& grad) {
        auto state = layer.initial_state();
        Matrix<double> y_before(6, 5);
        layer.forward(state, before, y_before, trace);
        for_each_buffer(trace, [](auto& buffer) { buffer.setConstant(NAN); });
        layer.forward(state, x, y, trace, fw::Pass::train);
        layer.backward(x, trace, dy, dx, grad);
        layer.forward(state, x.leftCols(1), y_before.leftCols(1), trace);
        CHECK(y_before.col(0).allFinite());
      };
      Matrix<double> y(6, steps), dx(6, steps);
      auto y_again = Matrix<double>::Constant(6, steps, NAN).eval(), dx_again = y_again;
      Attention<double> grad = layer, again = layer;
      run(y, dx, grad);
      for_each_buffer(trace, [](auto& buffer) { buffer.setConstant(NAN); });
      run(y_again, dx_again, again);
      CHECK(y.allFinite());
      CHECK(dx.allFinite());
      CHECK(y == y_again);
      CHECK(dx == dx_again);
      CHECK(layer_checks::same_parameters(grad, again));
    }
}

TEST_CASE("RelativeAttention: float near double", "[layers]") {
  const Options o{16, 4, 40, true};
  const auto layer = random_layer(o);
  Attention<float> narrow(o);
  layer_checks::copy_parameters(layer, narrow);
  fw::Random random(6);
  const Matrix<double> x = random_matrix(16, 100, random), dy = random_matrix(16, 100, random);
  Matrix<double> y(16, 100), dx(16, 100);
  Matrix<float> fy(16, 100), fdx(16, 100);
  Attention<double>::Trace trace;
  Attention<float>::Trace ftrace;
  auto state = layer.initial_state();
  auto fstate = narrow.initial_state();
  Attention<double> grad = layer;
  Attention<float> fgrad = narrow;
  fw::set_zero_parameters(grad);
  fw::set_zero_parameters(fgrad);
  for (int pass = 0; pass < 2; ++pass) {
    layer.forward(state, x, y, trace, fw::Pass::train);
    narrow.forward(fstate, x.cast<float>().eval(), fy, ftrace, fw::Pass::train);
    layer.backward(x, trace, dy, dx, grad);
    narrow.backward(x.cast<float>().eval(), ftrace, dy.cast<float>().eval(), fdx, fgrad);
    CHECK(relative_difference(fy.cast<double>(), y) <= 1e-5);
    CHECK(relative_difference(fdx.cast<double>(), dx) <= 1e-5);
  }
  fw::for_each_parameter(
      [](const std::string& path, const auto& g, const auto& f) {
        INFO(path);
        CHECK(relative_difference(f.template cast<double>(), g) <= 1e-5);
      },
      grad, fgrad);
}

TEST_CASE("RelativeAttention: scores beyond the range of exp", "[layers]") {
  auto layer = random_layer({4, 1, 8, false});
  layer.query.weight *= 1e3;
  fw::Random random(7);
  const Matrix<double> x = 30 * random_matrix(4, 20, random);
  CHECK(whole(layer, x).allFinite());
}

TEST_CASE("RelativeAttention: names, initialisation, refusals", "[layers]") {
  Attention<double> layer({6, 2, 4, false});
  CHECK(parameter_names(layer) ==
        "query.weight\nkey.weight\nvalue.weight\nposition.weight\noutput.weight\n"
        "content_bias\nposition_bias\n");
  CHECK(parameter_names(Attention<double>({6, 2, 4, true})) ==
        "query.weight\nquery.bias\nkey.weight\nvalue.weight\nvalue.bias\nposition.weight\n"
        "output.weight\noutput.bias\ncontent_bias\nposition_bias\n");
  CHECK(fw::parameter_count(layer) == 5 * 36 + 12);
  layer.content_bias.setOnes();
  fw::Random random(1);
  fw::initialise(layer, random);
  CHECK(layer.query.weight != layer.key.weight);
  CHECK(layer.position.weight.cwiseAbs().maxCoeff() > 0);
  CHECK((layer.content_bias.isZero(0) && layer.position_bias.isZero(0)));

  CHECK_THROWS_WITH(Attention<double>({0, 1, 4, false}),
                    "RelativeAttention: d_model is 0, expected at least 1");
  CHECK_THROWS_WITH(Attention<double>({6, 0, 4, false}),
                    "RelativeAttention: heads is 0, expected at least 1");
  CHECK_THROWS_WITH(Attention<double>({.d_model = 6}),
                    "RelativeAttention: window is 0, expected at least 1");
  CHECK_THROWS_WITH(Attention<double>({6, 4, 4, false}),
                    "RelativeAttention: d_model is 6, expected a multiple of heads, which is 4");

  const Matrix<double> x = random_matrix(6, 5, random);
  Matrix<double> y = Matrix<double>::Ones(6, 5);
  Attention<double>::Trace trace;
  auto other = Attention<double>({6, 2, 5, false}).initial_state();
  CHECK_THROWS_WITH(layer.forward(other, x, y, trace),
                    "RelativeAttention: state has 5 columns, the layer expects 4");
  other.recent.setZero(5, 4);
  CHECK_THROWS_WITH(layer.forward(other, x, y, trace),
                    "RelativeAttention: state has 5 rows, the layer expects 6");
  CHECK((other.length == 0 && other.recent.isZero(0)));
  CHECK((y.array() == 1).all());

  auto state = layer.initial_state();
  layer.forward(state, x, y, trace, fw::Pass::train);
  const auto before = state;
  CHECK_THROWS_WITH(layer.forward(state, x, y.leftCols(4), trace),
                    "RelativeAttention: y has 4 columns, the sequence expects 5");
  CHECK((state.length == before.length && state.recent == before.recent));
  Attention<double> grad = layer;
  Matrix<double> dx(6, 5);
  layer.backward(x, trace, y, dx, grad);  // the trace of the last successful pass is intact
}
