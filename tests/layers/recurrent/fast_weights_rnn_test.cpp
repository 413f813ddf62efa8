#include <fastweights/io/weights.hpp>
#include <fastweights/layers/recurrent/fast_weights_rnn.hpp>

#include "support/layer_checks.hpp"

using fw::FastWeightsForm;
using fw::FastWeightsRnn;
using fw::Index;
using layer_checks::check_layer;
using layer_checks::Complex;
using layer_checks::Matrix;
using layer_checks::relative_difference;
using Rnn = FastWeightsRnn<double>;

namespace {

// Random weights of initial size, all different from their defaults.
template <class Layer> void randomise(Layer& layer, std::uint64_t seed) {
  fw::Random random(seed);
  fw::initialise(layer, random);
  const double r = static_cast<double>(layer.outputs());
  Matrix<double> more(layer.outputs(), layer.outputs());
  random.fill(more, 0.3 / std::sqrt(r));
  layer.recurrent.weight += more.template cast<typename Layer::Scalar>();
  random.fill(layer.norm.bias, 0.3);
  for (Index i = 0; i < layer.norm.weight.size(); ++i)
    layer.norm.weight[i] = typename Layer::Scalar(0.7 + 0.5 * random.uniform());
}

// A train pass over x from `state`, and its gradients.
template <class Layer> struct Trained {
  Matrix<double> y, dx;
  Layer grad;
  typename Layer::State state;

  Trained(const Layer& layer, typename Layer::State before, const Matrix<double>& x,
          const Matrix<double>& dy)
      : y(Matrix<double>::Constant(layer.outputs(), x.cols(), NAN)),
        dx(Matrix<double>::Constant(layer.inputs(), x.cols(), NAN)),
        grad(layer),
        state(before) {
    typename Layer::Trace trace;
    fw::set_zero_parameters(grad);
    layer.forward(state, x, y, trace, fw::Pass::train);
    layer.backward(x, trace, dy, dx, grad);
  }
};

// The relative difference, but absolute for one unit: there the output of the norm is its bias, so
// all other gradients are 0 up to the rounding of numbers near 1.
template <class A, class B> double difference(Index r, const A& a, const B& b) {
  return r > 1 ? relative_difference(a, b) : largest_entry(a - b);
}

// Compares the results of a train pass in both forms and in the form that the layer selects.
template <class Layer>
void compare_forms(Layer layer, const typename Layer::State& state, const Matrix<double>& x,
                   const Matrix<double>& dy) {
  layer.form = FastWeightsForm::matrix;
  const Trained by_matrix(layer, state, x, dy);
  layer.form = FastWeightsForm::attention;
  const Trained by_attention(layer, state, x, dy);
  layer.form = FastWeightsForm::cheaper;
  const Trained by_selected(layer, state, x, dy);

  INFO("R " << layer.outputs() << ", S " << layer.inner << ", T " << x.cols());
  for (const auto* other : {&by_attention, &by_selected}) {
    CHECK(relative_difference(other->y, by_matrix.y) <= 1e-12);
    CHECK(difference(layer.outputs(), other->dx, by_matrix.dx) <= 1e-12);
    CHECK(relative_difference(other->state.A, by_matrix.state.A) <= 1e-12);
    fw::for_each_parameter(
        [&](const std::string& path, const auto& a, const auto& b) {
          INFO(path);
          CHECK(difference(layer.outputs(), a, b) <= 1e-12);
        },
        other->grad, by_matrix.grad);
  }
}

// All parameters are learned.
fw::FastWeightsRnnOptions all_learned(Index r, Index inner) {
  return {.inputs = 5,
          .hidden = r,
          .inner = inner,
          .learn_decay = true,
          .learn_rate = true,
          .bias = true};
}

template <class Layer> void compare_forms_on_random_input(Layer layer, Index steps, bool used) {
  fw::Random random(5);
  const auto x = layer_checks::random_matrix(layer.inputs(), steps, random);
  const auto dy = layer_checks::random_matrix(layer.outputs(), steps, random);
  const auto before = layer_checks::random_matrix(layer.inputs(), 4, random);
  auto state = layer.initial_state();
  typename Layer::Trace trace;
  Matrix<double> y(layer.outputs(), 4);
  if (used) layer.forward(state, before, y, trace);
  INFO("used " << used);
  compare_forms(layer, state, x, dy);
}

// The equations, token by token.
struct Reference {
  const Rnn& layer;
  Matrix<double> A;
  Eigen::VectorXd h;

  explicit Reference(const Rnn& l)
      : layer(l),
        A(Matrix<double>::Zero(l.outputs(), l.outputs())),
        h(Eigen::VectorXd::Zero(l.outputs())) {}

  Eigen::VectorXd normed(const Eigen::VectorXd& x) const {
    const double mean = x.mean(), variance = (x.array() - mean).square().mean();
    return ((x.array() - mean) / std::sqrt(variance + 1e-5) * layer.norm.weight.array() +
            layer.norm.bias.array())
        .matrix();
  }
  Eigen::VectorXd token(const Eigen::VectorXd& x) {
    const Eigen::VectorXd u = layer.recurrent.weight * h + layer.input.weight * x;
    Eigen::VectorXd hidden = u.cwiseMax(0);
    for (Index s = 0; s < layer.inner; ++s) hidden = normed(u + A * hidden).cwiseMax(0);
    h = hidden;
    if (layer.inner > 0) A = (layer.fixed_decay * A + layer.fixed_rate * h * h.transpose()).eval();
    return h;
  }
};

}  // namespace

TEST_CASE("FastWeightsRnn: the equations, in both forms", "[layers][rnn]") {
  for (const auto form :
       {FastWeightsForm::matrix, FastWeightsForm::attention, FastWeightsForm::cheaper})
    for (Index inner : {0, 1, 2, 3}) {
      Rnn layer({.inputs = 4, .hidden = 7, .inner = inner, .form = form});
      randomise(layer, 1);
      fw::Random random(2);
      const auto x = layer_checks::random_matrix(4, 20, random);
      Matrix<double> y = Matrix<double>::Constant(7, 20, NAN);
      auto state = layer.initial_state();
      Rnn::Trace trace;
      layer.forward(state, x, y, trace);
      Reference reference(layer);
      for (Index t = 0; t < 20; ++t)
        CHECK(largest_entry(reference.token(x.col(t)) - y.col(t)) <= 1e-12);
      CHECK(largest_entry(state.A - reference.A) <= 1e-12 * reference.A.cwiseAbs().maxCoeff());
      CHECK(state.h == y.col(19));
    }
}

TEST_CASE("FastWeightsRnn: the forms agree, forward and in every gradient", "[layers][rnn]") {
  for (Index r : {1, 3, 17, 64})
    for (Index inner : {1, 2, 3})
      for (Index steps : {1, 2, 11, 40})
        for (bool used : {false, true}) {
          Rnn layer(all_learned(r, inner));
          randomise(layer, 3);
          compare_forms_on_random_input(layer, steps, used);
        }
}

TEST_CASE("FastWeightsRnn: the forms agree for a state with a nonsymmetric A", "[layers][rnn]") {
  for (Index inner : {1, 2, 3}) {
    Rnn layer(all_learned(6, inner));
    randomise(layer, 4);
    fw::Random random(6);
    auto state = layer.initial_state();
    random.fill(state.h);
    random.fill(state.A);
    compare_forms(layer, state, layer_checks::random_matrix(5, 9, random),
                  layer_checks::random_matrix(6, 9, random));
  }
}

TEST_CASE("FastWeightsRnn: rates of zero", "[layers][rnn]") {
  for (const auto& [decay, rate] : {std::pair(0.0, 0.5), {0.9, 0.0}, {0.0, 0.0}}) {
    fw::FastWeightsRnnOptions options = all_learned(5, 1);
    options.decay = decay;
    options.rate = rate;
    Rnn layer(options);
    randomise(layer, 5);
    compare_forms_on_random_input(layer, 7, false);
    compare_forms_on_random_input(layer, 7, true);
  }
}

TEMPLATE_TEST_CASE("FastWeightsRnn: gradients, streaming, refusals", "[layers][rnn]", fw::Relu,
                   fw::Tanh) {
  for (const auto form : {FastWeightsForm::matrix, FastWeightsForm::attention})
    for (Index r : {1, 3, 17})
      for (Index inner : {0, 1, 2, 3}) {
        const fw::FastWeightsRnnOptions options{.inputs = 4,
                                                .hidden = r,
                                                .inner = inner,
                                                .learn_decay = r != 3,
                                                .learn_rate = r != 3,
                                                .bias = r != 17,
                                                .form = form};
        INFO("R " << r << ", S " << inner << (form == FastWeightsForm::matrix ? " matrix" : ""));
        check_layer(FastWeightsRnn<double, TestType>(options),
                    FastWeightsRnn<Complex, TestType>(options), {1, 2, 11});
      }
}

TEST_CASE("FastWeightsRnn: decay and rate can be learned separately", "[layers][rnn]") {
  for (const auto form : {FastWeightsForm::matrix, FastWeightsForm::attention})
    for (const bool decay : {false, true}) {
      auto options = all_learned(6, 2);
      options.learn_decay = decay;
      options.learn_rate = !decay;
      options.form = form;
      INFO((decay ? "decay" : "rate") << (form == FastWeightsForm::matrix ? ", matrix" : ""));
      check_layer(FastWeightsRnn<double>(options), FastWeightsRnn<Complex>(options), {1, 11});
    }
}

TEST_CASE("FastWeightsRnn: any split gives the same result, in any mix of forms", "[layers][rnn]") {
  fw::Random random(8);
  Rnn layer({.inputs = 4, .hidden = 9, .inner = 2});
  randomise(layer, 6);
  const auto x = layer_checks::random_matrix(4, 60, random);
  Matrix<double> whole(9, 60), parts = Matrix<double>::Constant(9, 60, NAN);
  Rnn::Trace trace;
  auto state = layer.initial_state();
  layer.forward(state, x, whole, trace, fw::Pass::train);
  auto stream = layer.initial_state();
  for (Index t = 0, n = 1; t < 60; t += n, n = std::min<Index>(n + 1, 60 - t)) {
    layer.form = n % 3 == 0   ? FastWeightsForm::matrix
                 : n % 3 == 1 ? FastWeightsForm::attention
                              : FastWeightsForm::cheaper;
    layer.forward(stream, x.middleCols(t, n), parts.middleCols(t, n), trace,
                  n % 2 ? fw::Pass::train : fw::Pass::infer);
  }
  CHECK(relative_difference(parts, whole) <= 1e-12);
  CHECK(relative_difference(stream.A, state.A) <= 1e-12);
}

TEST_CASE("FastWeightsRnn: the form is the requested one, else the cheaper", "[layers][rnn]") {
  const auto uses_attention = [](FastWeightsForm form, Index steps, fw::Pass pass, bool used,
                                 Index sequences = 1) {
    const Rnn layer({.inputs = 2, .hidden = 20, .form = form});
    auto state = layer.initial_state(sequences);
    if (used) state.A(3, 5) = 1e-300;
    const Matrix<double> x = Matrix<double>::Ones(2, steps * sequences);
    Matrix<double> y(20, steps * sequences);
    Rnn::Trace trace;
    layer.forward(state, x, y, trace, pass);
    return trace.attention_form;
  };
  using enum FastWeightsForm;
  for (const auto pass : {fw::Pass::infer, fw::Pass::train})
    for (Index steps : {1, 11, 200}) {
      CHECK(uses_attention(attention, steps, pass, false));
      CHECK(!uses_attention(matrix, steps, pass, false));
    }
  CHECK(uses_attention(cheaper, 11, fw::Pass::train, false));
  CHECK(uses_attention(cheaper, 11, fw::Pass::infer, false));
  CHECK(uses_attention(cheaper, 11, fw::Pass::train, true));
  CHECK(!uses_attention(cheaper, 11, fw::Pass::infer, true));
  CHECK(!uses_attention(cheaper, 1, fw::Pass::infer, false));
  CHECK(!uses_attention(cheaper, 100, fw::Pass::infer, false));
  CHECK(!uses_attention(cheaper, 100, fw::Pass::train, false));
  CHECK(!uses_attention(cheaper, 34, fw::Pass::train, false));
  CHECK(uses_attention(cheaper, 34, fw::Pass::train, false, 100));  // twelve matrices of 320 kB
  CHECK(!uses_attention(cheaper, 50, fw::Pass::infer, false, 100));
}

TEST_CASE("FastWeightsRnn: float follows double", "[layers][rnn]") {
  for (Index inner : {1, 3}) {
    const fw::FastWeightsRnnOptions options{.inputs = 10, .hidden = 50, .inner = inner};
    Rnn exact(options);
    FastWeightsRnn<float> rounded(options);
    randomise(exact, 7);
    layer_checks::copy_parameters(exact, rounded);
    fw::Random random(9);
    const auto x = layer_checks::random_matrix(10, 30, random);
    const Eigen::MatrixXf xf = x.cast<float>();
    Matrix<double> y(50, 30);
    Eigen::MatrixXf yf(50, 30);
    Rnn::Trace trace;
    FastWeightsRnn<float>::Trace ftrace;
    auto state = exact.initial_state();
    auto fstate = rounded.initial_state();
    exact.forward(state, x, y, trace);
    rounded.forward(fstate, xf, yf, ftrace);
    CHECK(relative_difference(yf.cast<double>(), y) <= 2e-5);
  }
}

TEST_CASE("FastWeightsRnn: parameters and their initial values", "[layers][rnn]") {
  Rnn fixed({.inputs = 2, .hidden = 3});
  CHECK(layer_checks::parameter_names(fixed) ==
        "recurrent.weight\ninput.weight\nnorm.weight\nnorm.bias\n");
  Rnn learned({.inputs = 2,
               .hidden = 400,
               .decay = 0.9,
               .rate = 0.25,
               .learn_decay = true,
               .learn_rate = true,
               .bias = true,
               .identity = 0.5});
  CHECK(layer_checks::parameter_names(learned) ==
        "recurrent.weight\ninput.weight\ninput.bias\nnorm.weight\nnorm.bias\ndecay\nrate\n");
  CHECK(learned.decay[0] == 0.9);
  CHECK(learned.rate[0] == 0.25);
  fw::Random random(1);
  fw::initialise(learned, random);
  CHECK(learned.recurrent.weight == 0.5 * Matrix<double>::Identity(400, 400));
  CHECK(learned.input.weight.cwiseAbs().maxCoeff() <= 0.05);
  CHECK(learned.input.weight.cwiseAbs().maxCoeff() > 0.045);
  CHECK(learned.input.bias.cwiseAbs().maxCoeff() > 0.045);
}

TEST_CASE("FastWeightsRnn: refusals", "[layers][rnn]") {
  CHECK_THROWS_WITH(Rnn({.inputs = 0, .hidden = 3}),
                    "FastWeightsRnn: inputs is 0, expected at least 1");
  CHECK_THROWS_WITH(Rnn({.inputs = 3, .hidden = 0}),
                    "FastWeightsRnn: hidden is 0, expected at least 1");
  CHECK_THROWS_WITH(Rnn({.inputs = 3, .hidden = 3, .inner = -1}),
                    "FastWeightsRnn: inner is -1, expected at least 0");
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH(Rnn({.inputs = 3, .hidden = 3, .decay = nan}),
                    "FastWeightsRnn: decay is nan, expected a finite number");
  CHECK_THROWS_WITH(Rnn({.inputs = 3, .hidden = 3, .rate = -infinity}),
                    "FastWeightsRnn: rate is -inf, expected a finite number");
  CHECK_THROWS_WITH(Rnn({.inputs = 3, .hidden = 3, .identity = infinity}),
                    "FastWeightsRnn: identity is inf, expected a finite number");
  const Rnn layer({.inputs = 2, .hidden = 3}), larger({.inputs = 2, .hidden = 4});
  Rnn::Trace trace;
  const Matrix<double> x = Matrix<double>::Ones(2, 4);
  Matrix<double> y = Matrix<double>::Ones(3, 4);
  auto state = larger.initial_state();
  CHECK_THROWS_WITH(layer.forward(state, x, y, trace),
                    "FastWeightsRnn: h in the state has 4 rows, the layer expects 3");
  state.h.setZero(3, 1);
  CHECK_THROWS_WITH(layer.forward(state, x, y, trace),
                    "FastWeightsRnn: A in the state has 4 rows, the layer expects 3");
  state.A.setZero(3, 5);
  CHECK_THROWS_WITH(layer.forward(state, x, y, trace),
                    "FastWeightsRnn: A in the state has 5 columns, the layer expects 3");
  CHECK((y.array() == 1).all());
  const Rnn twice({.inputs = 2, .hidden = 3, .inner = 2});
  state = twice.initial_state();
  twice.forward(state, x, y, trace, fw::Pass::train);
  Matrix<double> dx(2, 4);
  Rnn grad = layer;
  CHECK_THROWS_WITH(layer.backward(x, trace, y, dx, grad),
                    "FastWeightsRnn: the trace has 8 columns, the sequence expects 4");
}

TEST_CASE("FastWeightsRnn: a loaded stream continues with the same bits", "[layers][rnn]") {
  Rnn layer({.inputs = 4, .hidden = 6});
  randomise(layer, 8);
  fw::Random random(10);
  const auto x = layer_checks::random_matrix(4, 12, random);
  Matrix<double> y(6, 12), again(6, 12);
  Rnn::Trace trace;
  auto state = layer.initial_state();
  layer.forward(state, x, y, trace);
  fw::io::SafeTensorsWriter writer;
  fw::io::add_state(writer, state, "stream");
  auto loaded = layer.initial_state();
  fw::io::load_state(loaded, fw::io::SafeTensors::parse(writer.bytes()), "stream");
  layer.forward(state, x, y, trace);
  layer.forward(loaded, x, again, trace);
  CHECK(y == again);
  CHECK(loaded.A == state.A);
}
