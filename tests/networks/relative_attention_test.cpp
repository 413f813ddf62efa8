#include <fastweights/layers/relative_attention.hpp>

#include "networks/operation_checks.hpp"
#include "support/sizes.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;

template <class X> X attend(const X& x, Index d, Index heads, Index window, bool bias = false) {
  const X o = relative_attention(linear(x, "query", d, bias), linear(x, "key", d),
                                 linear(x, "value", d, bias), heads, window);
  return linear(o, "output", d, bias);
}

TEST_CASE("relative attention: gradients and streaming", "[networks]") {
  for (const Index window : {1, 2, 4, 20})
    for (const Index d : {1, 3, 17}) {
      INFO("window " << window << ", d " << d);
      check_operation(3, [&](const auto& x) { return attend(x, d, 1, window); });
    }
  check_operation([](const auto& x) { return attend(x, 6, 3, 3); });
  check_operation([](const auto& x) { return relative_attention(x, x, x, 1, 3); });
}

struct Sizes {
  Index d, heads, window;
  bool bias = false;
};
template <class S> Network<S> built(const Sizes& o) {
  Builder<S> net;
  return net.build(relative_attention(net.input(o.d), "",
                                      {.heads = o.heads, .window = o.window, .bias = o.bias}));
}
// Scores near 1, so that the attention is neither even nor on one token.
Net drawn(const Sizes& o) {
  Net network = built<double>(o);
  fw::Random random(3);
  for (auto& each : network.weights) {
    each.value.resize(each.rows(), each.cols());
    random.fill(each.value, 0.8 / std::sqrt(double(each.value.cols())));
  }
  return network;
}

Matrix<double> run_whole(const Net& network, const Matrix<double>& x) {
  State state = network.initial_state();
  Net::Trace trace;
  return run(network, state, x, trace);
}

// The paper's encoding of a distance: sines, then cosines.
Eigen::VectorXd encoding(Index distance, Index d) {
  Eigen::VectorXd sines((d + 1) / 2), cosines((d + 1) / 2), all(d);
  for (Index i = 0; i < sines.size(); ++i) {
    const double angle = double(distance) / std::pow(10000.0, 2 * double(i) / double(d));
    sines[i] = std::sin(angle);
    cosines[i] = std::cos(angle);
  }
  all << sines, cosines.head(d / 2);
  return all;
}

// The equation, one score at a time.
Matrix<double> by_definition(Net& network, const Sizes& o, const Matrix<double>& x) {
  const auto apply = [&](const std::string& name, const Matrix<double>& in) {
    Matrix<double> y = weight(network, name + ".weight") * in;
    if (o.bias && name != "key" && name != "position")
      y.colwise() += weight(network, name + ".bias").col(0);
    return y;
  };
  const Matrix<double> q = apply("query", x), k = apply("key", x), v = apply("value", x);
  const Eigen::VectorXd u = weight(network, "content_bias"), w = weight(network, "position_bias");
  const Index size = o.d / o.heads, steps = x.cols();
  Matrix<double> r(o.d, steps), heads = Matrix<double>::Zero(o.d, steps);
  for (Index distance = 0; distance < steps; ++distance)
    r.col(distance) = apply("position", encoding(distance, o.d));
  for (Index i = 0; i < steps; ++i)
    for (Index h = 0; h < o.d; h += size) {
      double total = 0;
      for (Index j = std::max<Index>(0, i + 1 - o.window); j <= i; ++j) {
        double score = 0;
        for (Index c = h; c < h + size; ++c)
          score += (q(c, i) + u[c]) * k(c, j) + (q(c, i) + w[c]) * r(c, i - j);
        const double p = std::exp(score / std::sqrt(double(size)));
        heads.col(i).segment(h, size) += p * v.col(j).segment(h, size);
        total += p;
      }
      heads.col(i).segment(h, size) /= total;
    }
  return apply("output", heads);
}

TEST_CASE("relative attention: the equation, one score at a time", "[networks]") {
  fw::Random random(1);
  for (const Sizes& o :
       {Sizes{6, 2, 4}, Sizes{6, 2, 4, true}, Sizes{7, 1, 5, true}, Sizes{5, 5, 40, true},
        Sizes{1, 1, 3}, Sizes{4, 2, 1, true}, Sizes{12, 3, 70}, Sizes{12, 3, 200, true}})
    for (const Index steps : {1, 2, 4, 5, 17, 64, 65, 150}) {
      INFO("d " << o.d << ", window " << o.window << ", steps " << steps);
      Net network = drawn(o);
      const Matrix<double> x = random_matrix(o.d, steps, random);
      const Matrix<double> expected = by_definition(network, o, x);
      CHECK(largest_entry(run_whole(network, x) - expected) <= 1e-13 * largest_entry(expected));
    }
}

TEST_CASE("relative attention: gradients over several blocks of queries", "[networks]") {
  for (const Index window : sizes({3, 30, 67, 150}, {30})) {
    INFO("window " << window);
    const RelativeAttentionOptions o{.heads = 2, .window = window, .bias = true};
    const auto f = [&](const auto& x) { return relative_attention(x, "near", o); };
    check_gradients(network_of(4, f), f, 67);
  }
}

TEST_CASE("relative attention: a window of one token gives W_o W_v x", "[networks]") {
  const Sizes o{6, 2, 1, true};
  const Net network = drawn(o);
  const auto two_maps = [](const auto& x) {
    return linear(linear(x, "value", 6, true), "output", 6, true);
  };
  Net two = network_of(6, two_maps);
  Net source = network;
  for (auto& each : two.weights) each.value = weight(source, each.name);
  fw::Random random(2);
  const Matrix<double> x = random_matrix(6, 70, random), dy = random_matrix(6, 70, random);
  State state = network.initial_state(), none = two.initial_state();
  Net::Trace trace, two_trace;
  Trained given = train(network, state, x, dy, trace),
          expected = train(two, none, x, dy, two_trace);
  check_equal(given.y, expected.y, 1e-14);
  check_equal(given.dx, expected.dx, 1e-13);
  for (const auto& each : expected.grad.weights) {
    INFO(each.name);
    check_equal(weight(given.grad, each.name), each.value, 1e-12);
  }
  CHECK(weight(given.grad, "query.weight").isZero(1e-12));
}

TEST_CASE("relative attention: any split of a long sequence, in one trace", "[networks]") {
  fw::Random random(4);
  constexpr Index steps = 200;
  const Matrix<double> x = random_matrix(12, steps, random);
  for (const Index window : {1, 2, 33, 64, 65, 128, 300}) {
    const Net network = drawn({12, 3, window, true});
    const Matrix<double> expected = run_whole(network, x);
    Net::Trace trace;
    for (const std::vector<Index>& pieces :
         std::vector<std::vector<Index>>{{1}, {3}, {64}, {1, 63, 2, 65}, {100, 1, 1}, {199, 1}})
      for (const fw::Pass pass : {fw::Pass::infer, fw::Pass::train}) {
        INFO("window " << window << ", first piece " << pieces[0]);
        Matrix<double> y(12, steps);
        State state = network.initial_state();
        std::size_t piece = 0;
        for (Index t = 0, n = 0; t < steps; t += n) {
          n = std::min(pieces[piece++ % pieces.size()], steps - t);
          y.middleCols(t, n) = run(network, state, x.middleCols(t, n), trace, pass);
        }
        check_equal(y, expected, 1e-13);
        CHECK(state.positions[0] == steps);
      }
  }
}

TEST_CASE("relative attention: float near double", "[networks]") {
  const Sizes o{16, 4, 40, true};
  const Net network = drawn(o);
  Network<float> narrow = built<float>(o);
  for (std::size_t i = 0; i < narrow.weights.size(); ++i)
    narrow.weights[i].value = network.weights[i].value.cast<float>();
  fw::Random random(6);
  const Matrix<double> x = random_matrix(16, 100, random), dy = random_matrix(16, 100, random);
  const Matrix<float> float_x = x.cast<float>(), float_dy = dy.cast<float>();
  Matrix<float> y(16, 100), dx(16, 100);
  Net::Trace trace;
  Network<float>::Trace float_trace;
  State state = network.initial_state(), float_state = narrow.initial_state();
  const auto near = [](const Matrix<float>& given, const Matrix<double>& expected) {
    CHECK(largest_entry(given.cast<double>() - expected) <= 1e-5 * largest_entry(expected));
  };
  for (int pass = 0; pass < 2; ++pass) {
    const Trained expected = train(network, state, x, dy, trace);
    Network<float> grad = fw::zero_gradient(narrow);
    narrow.forward(float_state, float_x, y, float_trace, fw::Pass::train);
    narrow.backward(float_x, float_trace, float_dy, dx, grad);
    near(y, expected.y);
    near(dx, expected.dx);
    for (std::size_t i = 0; i < grad.weights.size(); ++i) {
      INFO(grad.weights[i].name);
      near(grad.weights[i].value, expected.grad.weights[i].value);
    }
  }
}

TEST_CASE("relative attention: scores beyond the range of exp", "[networks]") {
  Net network = drawn({4, 1, 8});
  weight(network, "query.weight") *= 1e3;
  fw::Random random(7);
  CHECK(run_whole(network, 30 * random_matrix(4, 20, random)).allFinite());
}

TEST_CASE("relative attention: names, and how it starts", "[networks]") {
  Net network = built<double>({6, 2, 4});
  CHECK(names_of_weights(network) ==
        "query.weight\nkey.weight\nvalue.weight\nposition.weight\ncontent_bias\n"
        "position_bias\noutput.weight\n");
  CHECK(built<double>({6, 2, 4, true}).weights.size() == 10);
  fw::Random random(1);
  fw::initialise(network, random);
  CHECK(fw::parameter_count(network) == 5 * 36 + 12);
  CHECK(weight(network, "query.weight") != weight(network, "key.weight"));
  CHECK(weight(network, "position.weight").cwiseAbs().maxCoeff() > 0);
  CHECK(weight(network, "content_bias").isZero(0));
  CHECK(weight(network, "position_bias").isZero(0));
}

// A trace keeps W_r R between passes.
TEST_CASE("relative attention sees that its position weight changes", "[networks]") {
  Net network = network_of(3, [](const auto& x) { return attend(x, 3, 1, 4); });
  fw::Random random(6);
  const Matrix<double> x = random_matrix(3, 5, random);
  State state = network.initial_state(), fresh = state, other = state;
  Net::Trace trace, new_trace;
  const Matrix<double> before = run(network, state, x, trace);
  weight(network, "position.weight") *= 2;
  const Matrix<double> after = run(network, fresh, x, trace);
  CHECK(after != before);
  CHECK(after == run(network, other, x, new_trace));
}

TEST_CASE("relative attention refuses sizes that do not fit", "[networks]") {
  const auto refused = [](Index rows, Index heads, Index window, const std::string& what) {
    CHECK_THROWS_WITH(network_of(6,
                                 [&](const auto& x) {
                                   return relative_attention(x, x.rows_of(0, rows), x, heads,
                                                             window);
                                 }),
                      ContainsSubstring(what));
  };
  refused(6, 4, 2, "6 rows do not divide into 4 equal parts");
  refused(6, 0, 2, "equal parts");
  refused(6, 2, 0, "window: the window is 0 tokens");
  refused(6, 2, Index(1) << 40, "tokens, expected 1 to 16777216");
  refused(5, 2, 2, "window: an input has 5 rows");
}

}  // namespace
