#include <fastweights/io/safetensors.hpp>
#include <fastweights/io/weights.hpp>

#include "data_folder.hpp"
#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;
using Catch::Matchers::ContainsSubstring;
using fw::FastWeightsForm;
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr FastWeightsForm forms[] = {FastWeightsForm::cheaper, FastWeightsForm::matrix,
                                     FastWeightsForm::attention};

template <class F = Relu> Function fast_weights(const FastWeightsRnnOptions& o) {
  return [o](const auto& x) { return fast_weights_rnn<F>(x, "net", o); };
}
FastWeightsRnnOptions all_learned(Index r, Index inner,
                                  FastWeightsForm form = FastWeightsForm::cheaper) {
  return {.hidden = r,
          .inner = inner,
          .learn_decay = true,
          .learn_rate = true,
          .bias = true,
          .form = form};
}

// Weights of initial size, W near 0.05 I, all different from their defaults.
Net network_near_start(Index inputs, const FastWeightsRnnOptions& o) {
  Net network = network_of(inputs, fast_weights(o));
  fw::Random random(1);
  fw::initialise(network, random);
  Matrix<double>& W = weight(network, "net.recurrent.weight");
  random.fill(W, 0.3 / std::sqrt(double(o.hidden)));
  W.diagonal().array() += 0.05;
  random.fill(weight(network, "net.norm.bias"), 0.3);
  for (double& gain : weight(network, "net.norm.weight").reshaped())
    gain = 0.7 + 0.5 * random.uniform();
  return network;
}

FastWeightsState<double>& fast_state(State& state) {
  return record_of<FastWeightsState<double>>(state);
}

TEST_CASE("fast weights of a recurrent net: gradients and streaming", "[networks]") {
  for (const auto form : forms)
    for (const Index inner : {1, 3})
      for (const bool learns : {false, true}) {
        INFO("form " << int(form) << ", " << inner << " inner steps, learned rates " << learns);
        for (const Index n : {1, 3, 17}) {
          const FastWeightsRnnOptions o{.hidden = n,
                                        .inner = inner,
                                        .learn_decay = learns,
                                        .learn_rate = learns,
                                        .bias = learns,
                                        .form = form};
          check_operation(3, fast_weights<Tanh>(o));
          if (n == 3) check_operation(fast_weights(o));
        }
      }
}

// The matrix form then keeps every third matrix.
TEST_CASE("fast weights of a recurrent net: gradients of eleven tokens", "[networks]") {
  const auto check = [](const Function& f) { check_gradients(network_of(4, f), f, 11); };
  for (const auto form : {FastWeightsForm::matrix, FastWeightsForm::attention})
    for (const Index n : {1, 3, 17})
      for (const Index inner : {1, 2, 3}) {
        INFO("form " << int(form) << ", R " << n << ", " << inner << " inner steps");
        check(fast_weights<Relu>(all_learned(n, inner, form)));
        check(fast_weights<Tanh>({.hidden = n, .inner = inner, .form = form}));
      }
}

TEST_CASE("fast weights of a recurrent net: decay and rate can be learned apart", "[networks]") {
  for (const auto form : {FastWeightsForm::matrix, FastWeightsForm::attention})
    for (const bool decay : {false, true}) {
      INFO("form " << int(form) << (decay ? ", decay" : ", rate"));
      auto o = all_learned(6, 2, form);
      o.learn_decay = decay;
      o.learn_rate = !decay;
      check_operation(3, fast_weights(o));
    }
}

TEST_CASE("fast weights of a recurrent net: several sequences at once give the results of each",
          "[networks]") {
  for (const auto form : {FastWeightsForm::matrix, FastWeightsForm::attention})
    for (const Index n : {1, 3, 17, 63})
      for (const Index inner : {1, 2}) {
        INFO("form " << int(form) << ", R " << n << ", " << inner << " inner steps");
        const Net network = network_near_start(4, all_learned(n, inner, form));
        for (const Index sequences : {1, 2, 5})
          for (const Index steps : {1, 2, 9}) check_batch(network, sequences, steps);
      }
}

// The equations, token by token.
struct Reference {
  Net network;
  FastWeightsRnnOptions options;
  Matrix<double> A;
  Eigen::VectorXd h;

  Reference(const Net& net, const FastWeightsRnnOptions& o)
      : network(net),
        options(o),
        A(Matrix<double>::Zero(o.hidden, o.hidden)),
        h(Eigen::VectorXd::Zero(o.hidden)) {}

  Eigen::VectorXd normed(const Eigen::VectorXd& x) {
    const double mean = x.mean(), variance = (x.array() - mean).square().mean();
    return ((x.array() - mean) / std::sqrt(variance + 1e-5) *
                weight(network, "net.norm.weight").col(0).array() +
            weight(network, "net.norm.bias").col(0).array())
        .matrix();
  }
  Eigen::VectorXd token(const Eigen::VectorXd& x) {
    const Eigen::VectorXd u =
        weight(network, "net.recurrent.weight") * h + weight(network, "net.input.weight") * x;
    h = u.cwiseMax(0);
    for (Index s = 0; s < options.inner; ++s) h = normed(u + A * h).cwiseMax(0);
    A = (options.decay * A + options.rate * h * h.transpose()).eval();
    return h;
  }
};

TEST_CASE("fast weights of a recurrent net: the equations, in every form", "[networks]") {
  for (const auto form : forms)
    for (const Index inner : {1, 2, 3}) {
      const FastWeightsRnnOptions o{.hidden = 7, .inner = inner, .form = form};
      const Net network = network_near_start(4, o);
      fw::Random random(2);
      const Matrix<double> x = random_matrix(4, 20, random);
      State state = network.initial_state();
      Net::Trace trace;
      const Matrix<double> y = run(network, state, x, trace);
      Reference reference(network, o);
      for (Index t = 0; t < 20; ++t)
        CHECK(largest_entry(reference.token(x.col(t)) - y.col(t)) <= 1e-12);
      const auto& [h, A] = fast_state(state);
      CHECK(largest_entry(A - reference.A) <= 1e-12 * largest_entry(reference.A));
      CHECK(h == y.col(19));
    }
}

// For one unit the output of the norm is its bias, so all other gradients are 0 up to the rounding
// of numbers near 1.
void check_close(Index r, const Matrix<double>& given, const Matrix<double>& expected) {
  CHECK(largest_entry(given - expected) <= 1e-12 * (r > 1 ? largest_entry(expected) : 1.0));
}

// Compares a train pass over `steps` tokens in all forms, from states that set_state makes.
template <class F> void compare_forms(FastWeightsRnnOptions o, Index steps, const F& set_state) {
  INFO("R " << o.hidden << ", S " << o.inner << ", T " << steps);
  fw::Random random(5);
  const Matrix<double> x = random_matrix(5, steps, random);
  const Matrix<double> dy = random_matrix(o.hidden, steps, random);
  std::vector<State> states;
  std::vector<Trained> results;
  for (const auto form :
       {FastWeightsForm::matrix, FastWeightsForm::attention, FastWeightsForm::cheaper}) {
    o.form = form;
    const Net network = network_near_start(5, o);
    states.push_back(network.initial_state());
    set_state(network, states.back());
    Net::Trace trace;
    results.push_back(train(network, states.back(), x, dy, trace));
  }
  for (const std::size_t i : {1u, 2u}) {
    check_equal(results[i].y, results[0].y, 1e-12);
    check_close(o.hidden, results[i].dx, results[0].dx);
    const Matrix<double>& A = fast_state(states[0]).A;
    CHECK(largest_entry(fast_state(states[i]).A - A) <= 1e-12 * largest_entry(A));
    for (const auto& gradient : results[i].grad.weights) {
      INFO(gradient.name);
      check_close(o.hidden, gradient.value, weight(results[0].grad, gradient.name));
    }
  }
}

void stay_at_zero(const Net&, State&) {}
void read_four_tokens(const Net& network, State& state) {
  fw::Random random(6);
  Net::Trace trace;
  run(network, state, random_matrix(network.inputs(), 4, random), trace);
}

TEST_CASE("fast weights of a recurrent net: the forms agree, also in every gradient",
          "[networks]") {
  for (const Index r : {1, 3, 17, 64})
    for (const Index inner : {1, 2, 3})
      for (const Index steps : {1, 2, 11, 40}) {
        compare_forms(all_learned(r, inner), steps, stay_at_zero);
        compare_forms(all_learned(r, inner), steps, read_four_tokens);
      }
}

TEST_CASE("fast weights of a recurrent net: the forms agree for a nonsymmetric A", "[networks]") {
  for (const Index inner : {1, 2, 3})
    compare_forms(all_learned(6, inner), 9, [](const Net&, State& state) {
      fw::Random random(6);
      auto& [h, A] = fast_state(state);
      random.fill(h);
      random.fill(A);
    });
}

TEST_CASE("fast weights of a recurrent net: the forms agree for rates of 0", "[networks]") {
  for (const auto& [decay, rate] : {std::pair(0.0, 0.5), {0.9, 0.0}, {0.0, 0.0}}) {
    FastWeightsRnnOptions o = all_learned(5, 1);
    o.decay = decay;
    o.rate = rate;
    compare_forms(o, 7, stay_at_zero);
    compare_forms(o, 7, read_four_tokens);
  }
}

TEST_CASE("fast weights of a recurrent net: any split, in any mix of forms", "[networks]") {
  std::vector<Net> networks;
  for (const auto form : forms)
    networks.push_back(network_near_start(4, {.hidden = 9, .inner = 2, .form = form}));
  fw::Random random(8);
  const Matrix<double> x = random_matrix(4, 60, random);
  Net::Trace trace;
  State state = networks[0].initial_state(), stream = state;
  const Matrix<double> whole = run(networks[0], state, x, trace, fw::Pass::train);
  for (Index t = 0, n = 1; t < 60; t += n, n = std::min<Index>(n + 1, 60 - t)) {
    const Net& network = networks[std::size_t(n) % 3];
    const Matrix<double> part =
        run(network, stream, x.middleCols(t, n), trace, n % 2 ? fw::Pass::train : fw::Pass::infer);
    check_equal(part, whole.middleCols(t, n), 1e-12);
  }
  const Matrix<double>& A = fast_state(state).A;
  CHECK(largest_entry(fast_state(stream).A - A) <= 1e-12 * largest_entry(A));
}

// True if a pass of `steps` tokens of every sequence computes the attention form.
bool uses_attention(FastWeightsForm form, Index steps, fw::Pass pass, bool used = false,
                    Index sequences = 1) {
  const Net network = network_of(2, fast_weights({.hidden = 20, .form = form}));
  State state = network.initial_state(sequences);
  if (used) fast_state(state).A(3, 5) = 1e-300;
  Net::Trace trace;
  run(network, state, Matrix<double>::Ones(2, steps * sequences), trace, pass);
  using Own = RecurFastWeights<double, Relu>::OwnTrace;
  for (const auto& own : trace.operations)
    if (own) return static_cast<const Own&>(*own).attention_form;
  FAIL("the operation has no trace");
  return false;
}

TEST_CASE("fast weights of a recurrent net: the form is that of the options, or the cheaper",
          "[networks]") {
  using enum FastWeightsForm;
  constexpr auto infer = fw::Pass::infer, learn = fw::Pass::train;
  for (const auto pass : {infer, learn})
    for (const Index steps : {1, 11, 200}) {
      CHECK(uses_attention(attention, steps, pass));
      CHECK(!uses_attention(FastWeightsForm::matrix, steps, pass));
    }
  CHECK(uses_attention(cheaper, 11, learn));
  CHECK(uses_attention(cheaper, 11, infer));
  CHECK(uses_attention(cheaper, 11, learn, true));
  CHECK(!uses_attention(cheaper, 11, infer, true));
  CHECK(!uses_attention(cheaper, 1, infer));
  CHECK(!uses_attention(cheaper, 100, infer));
  CHECK(!uses_attention(cheaper, 100, learn));
  CHECK(!uses_attention(cheaper, 34, learn));
  CHECK(uses_attention(cheaper, 34, learn, false, 100));  // twelve matrices of 320 kB
  CHECK(!uses_attention(cheaper, 50, infer, false, 100));
}

TEST_CASE("fast weights of a recurrent net: when attention is cheaper", "[networks]") {
  using fw::detail::attention_is_cheaper;
  const Matrix<double> zero = Matrix<double>::Zero(20, 20), used = Matrix<double>::Ones(20, 20);
  const Matrix<double> bad = Matrix<double>::Constant(20, 20, not_a_number);
  CHECK(!attention_is_cheaper(1, 1, zero, false));
  CHECK(attention_is_cheaper(1, 1, zero, true));
  for (const bool train : {false, true}) CHECK(attention_is_cheaper(11, 1, zero, train));
  CHECK(attention_is_cheaper(11, 1, used, true));
  CHECK(!attention_is_cheaper(11, 1, used, false));
  CHECK(!attention_is_cheaper(11, 1, bad, false));  // not a matrix that is 0
  CHECK(attention_is_cheaper(23, 1, zero, false));  // T + 16 < R (1 + 1/S)
  CHECK(!attention_is_cheaper(24, 1, zero, false));
  CHECK(attention_is_cheaper(13, 2, zero, false));
  CHECK(!attention_is_cheaper(14, 2, zero, false));
}

TEST_CASE("fast weights of a recurrent net: float follows double", "[networks]") {
  for (const Index inner : {1, 3}) {
    const FastWeightsRnnOptions o{.hidden = 50, .inner = inner};
    const Net exact = network_near_start(10, o);
    Builder<float> builder;
    Network<float> rounded = builder.build(fast_weights_rnn(builder.input(10), "net", o));
    for (std::size_t i = 0; i < rounded.weights.size(); ++i)
      rounded.weights[i].value = exact.weights[i].value.cast<float>();
    fw::Random random(9);
    const Matrix<double> x = random_matrix(10, 30, random);
    State state = exact.initial_state(), rounded_state = rounded.initial_state();
    Net::Trace trace;
    Network<float>::Trace rounded_trace;
    const Matrix<double> y = run(exact, state, x, trace);
    const Matrix<float> given = run(rounded, rounded_state, x.cast<float>(), rounded_trace);
    CHECK(largest_entry(given.cast<double>() - y) <= 2e-5 * largest_entry(y));
  }
}

TEST_CASE("fast weights of a recurrent net: a loaded stream continues with the same bits",
          "[networks]") {
  const Net network = network_near_start(4, {.hidden = 6});
  fw::Random random(10);
  const Matrix<double> x = random_matrix(4, 12, random);
  State state = network.initial_state(), loaded = state;
  Net::Trace trace;
  run(network, state, x, trace);
  fw::io::SafeTensorsWriter writer;
  fw::io::add_state(writer, state, "stream");
  fw::io::load_state(loaded, fw::io::SafeTensors::parse(writer.bytes()), "stream");
  CHECK(run(network, state, x, trace) == run(network, loaded, x, trace));
  CHECK(fast_state(loaded).A == fast_state(state).A);
}

// The recurrent net of a classifier, from its symbols to its logits.
Net classifier(const fw::io::SafeTensors& file, FastWeightsForm form) {
  const auto number = [&](const char* name) { return std::stod(file.metadata().at(name)); };
  const auto rows = [&](const char* name) { return Index(file.shape(name)[0]); };
  Builder<double> builder;
  const X symbols =
      embedding(builder, "emb", rows("p_emb__weight"), Index(file.shape("p_emb__weight")[1]));
  const X h = fast_weights_rnn(symbols, "net",
                               {.hidden = rows("p_U__weight"),
                                .inner = Index(number("S")),
                                .decay = number("lam"),
                                .rate = number("eta"),
                                .form = form});
  const X inner = relu(linear(h, "head.0", rows("p_head__0__weight"), true));
  return builder.build(linear(inner, "head.2", rows("p_head__2__weight"), true));
}

void check_vectors(const std::string& name, FastWeightsForm form) {
  INFO(name << ", form " << int(form));
  const auto file = fw::io::SafeTensors::read(std::filesystem::path(FASTWEIGHTS_REFERENCE_DIR) /
                                              (name + ".safetensors"));
  const std::pair<const char*, const char*> names[] = {
      {"emb.weight", "emb__weight"},         {"net.input.weight", "U__weight"},
      {"net.recurrent.weight", "W__weight"}, {"net.norm.weight", "ln__weight"},
      {"net.norm.bias", "ln__bias"},         {"head.0.weight", "head__0__weight"},
      {"head.0.bias", "head__0__bias"},      {"head.2.weight", "head__2__weight"},
      {"head.2.bias", "head__2__bias"}};
  Net network = classifier(file, form);
  for (const auto& [ours, theirs] : names)
    weight(network, ours) = file.matrix<double>(std::string("p_") + theirs);
  const std::vector<int> ids = file.values<int>("x_tokens");
  const Matrix<double> logits = file.matrix<double>("logits").transpose();
  const Matrix<double> up = file.matrix<double>("up_logits").transpose();
  const Index batch = logits.cols(), steps = Index(ids.size()) / batch;
  State state = network.initial_state(batch);
  Net::Trace trace;
  Matrix<double> y(logits.rows(), Index(ids.size())), dy = y;
  network.forward(state, ids, y, trace, fw::Pass::train);
  dy.setZero();
  Matrix<double> last = logits;
  for (Index b = 0; b < batch; ++b) {
    last.col(b) = y.col((b + 1) * steps - 1);
    dy.col((b + 1) * steps - 1) = up.col(b);
  }
  check_equal(last, logits, 1e-12);
  Net grad = fw::zero_gradient(network);
  network.backward(trace, dy, grad);
  for (const auto& [ours, theirs] : names) {
    INFO(ours);
    check_equal(weight(grad, ours), file.matrix<double>(std::string("gradout_p_") + theirs), 1e-10);
  }
}

TEST_CASE("fast weights of a recurrent net: reference vectors", "[networks]") {
  for (const auto form : forms)
    for (const char* name : {"ba2016_fast_rnn_S1", "ba2016_fast_rnn_S2", "ba2016_fast_rnn_S3"})
      check_vectors(name, form);
}

TEST_CASE("fast weights of a recurrent net: names and first values of the weights", "[networks]") {
  CHECK(names_of_weights(network_of(2, fast_weights({.hidden = 3}))) ==
        "net.input.weight\nnet.recurrent.weight\nnet.norm.weight\nnet.norm.bias\n");
  FastWeightsRnnOptions o = all_learned(400, 1);
  o.decay = 0.9;
  o.rate = 0.25;
  Net network = network_of(2, fast_weights(o));
  CHECK(names_of_weights(network) ==
        "net.input.weight\nnet.input.bias\nnet.recurrent.weight\nnet.norm.weight\n"
        "net.norm.bias\nnet.decay\nnet.rate\n");
  fw::Random random(1);
  fw::initialise(network, random);
  CHECK(weight(network, "net.decay")(0, 0) == 0.9);
  CHECK(weight(network, "net.rate")(0, 0) == 0.25);
  CHECK(weight(network, "net.norm.weight") == Matrix<double>::Ones(400, 1));
  CHECK(weight(network, "net.norm.bias").isZero(0));
  for (const char* name : {"net.input.weight", "net.input.bias"}) {
    CHECK(largest_entry(weight(network, name)) <= 0.05);
    CHECK(largest_entry(weight(network, name)) > 0.045);
  }
  start_at_identity(network, "net.recurrent.weight", 0.5);
  CHECK(weight(network, "net.recurrent.weight") == 0.5 * Matrix<double>::Identity(400, 400));
  CHECK_THROWS_WITH(start_at_identity(network, "net.input.weight"),
                    ContainsSubstring("no square weight net.input.weight"));
  for (const double scale : {not_a_number, infinite})
    CHECK_THROWS_WITH(start_at_identity(network, "net.recurrent.weight", scale),
                      ContainsSubstring("scale is") && ContainsSubstring("a finite number"));
  CHECK(weight(network, "net.recurrent.weight") == 0.5 * Matrix<double>::Identity(400, 400));
}

TEST_CASE("fast weights of a recurrent net: options that are refused", "[networks]") {
  const auto refused = [](const FastWeightsRnnOptions& o, const std::string& what) {
    CHECK_THROWS_WITH(network_of(3, fast_weights(o)), ContainsSubstring("net: " + what));
  };
  refused({.hidden = 0}, "hidden is 0, expected at least 1");
  for (const Index inner : {0, -1}) refused({.hidden = 2, .inner = inner}, "inner is");
  for (const double bad : {not_a_number, -infinite}) {
    refused({.hidden = 2, .decay = bad}, "decay is");
    refused({.hidden = 2, .rate = bad}, "rate is");
  }
}

TEST_CASE("fast weights of a recurrent net: states of other sizes are refused", "[networks]") {
  const Net network = network_of(2, fast_weights({.hidden = 3}));
  const auto refused = [&](State state, const std::string& what) {
    const Matrix<double> x = Matrix<double>::Ones(2, 4), before = numbers_of(state);
    Matrix<double> y = Matrix<double>::Ones(3, 4);
    Net::Trace trace;
    CHECK_THROWS_WITH(network.forward(state, x, y, trace), ContainsSubstring(what));
    CHECK((y.array() == 1).all());
    CHECK(numbers_of(state) == before);
  };
  State state = network_of(2, fast_weights({.hidden = 4})).initial_state();
  refused(state, "h in the state has 4 rows");
  fast_state(state).h.setZero(3, 1);
  refused(state, "A in the state has 4 rows");
  fast_state(state).A.setZero(3, 5);
  refused(state, "A in the state has 5 columns");
  fast_state(state).A.setZero(3, 3);
  fast_state(state).h.setZero(3, 2);
  refused(state, "h in the state has 2 columns");
}

}  // namespace
