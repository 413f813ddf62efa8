#include <fastweights/io/safetensors.hpp>
#include <fastweights/layers/recurrent/fast_weights_rnn.hpp>

#include "data_folder.hpp"
#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;
using Catch::Matchers::ContainsSubstring;
using fw::FastWeightsForm;
using Layer = fw::FastWeightsRnn<double>;
constexpr FastWeightsForm forms[] = {FastWeightsForm::cheaper, FastWeightsForm::matrix,
                                     FastWeightsForm::attention};

Function fast_weights(const FastWeightsRnnOptions& o) {
  return [o](const auto& x) { return fast_weights_rnn(x, "net", o); };
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
          check_operation(3, [&](const auto& x) { return fast_weights_rnn<Tanh>(x, "net", o); });
          if (n == 3) check_operation(fast_weights(o));
        }
      }
}

// The weights of a layer by the names of the network's, without `net.`.
template <class F> void for_each_weight(Layer& layer, const F& f) {
  f("input.weight", layer.input.weight);
  f("input.bias", layer.input.bias);
  f("recurrent.weight", layer.recurrent.weight);
  f("norm.weight", layer.norm.weight);
  f("norm.bias", layer.norm.bias);
  f("decay", layer.decay);
  f("rate", layer.rate);
}
Matrix<double>& weight(Net& network, const std::string& name) {
  for (auto& each : network.weights)
    if (each.name == name) return each.value;
  FAIL("no weight " << name);
  return network.weights[0].value;
}

TEST_CASE("fast weights of a recurrent net are those of the layer", "[networks]") {
  constexpr Index sequences = 2, inputs = 3;
  for (const auto form : forms)
    for (const auto& [hidden, steps] :
         std::vector<std::pair<Index, Index>>{{1, 9}, {3, 1}, {5, 9}, {17, 9}}) {
      INFO("form " << int(form) << ", R " << hidden << ", " << steps << " tokens");
      Layer layer({.inputs = inputs,
                   .hidden = hidden,
                   .inner = 2,
                   .learn_decay = true,
                   .learn_rate = true,
                   .bias = true,
                   .form = form});
      Net network =
          network_of(inputs, fast_weights({hidden, 2, 0.95, 0.5, true, true, true, form}));
      for_each_weight(
          layer, [&](const std::string& name, auto& to) { to = weight(network, "net." + name); });
      Layer expected = layer;
      fw::set_zero_parameters(expected);
      fw::Random random(6);
      const Matrix<double> x = random_matrix(inputs, sequences * steps, random);
      const Matrix<double> dy = random_matrix(hidden, sequences * steps, random);
      State state = network.initial_state(sequences);
      auto layer_state = layer.initial_state(sequences);
      Net::Trace trace;
      Layer::Trace layer_trace;
      for (int pass = 0; pass < 2; ++pass) {  // from the state 0, and from a used one
        Matrix<double> y = dy, dx = x, given_dx = x;
        layer.forward(layer_state, x, y, layer_trace, fw::Pass::train);
        layer.backward(x, layer_trace, dy, dx, expected);
        check_equal(run(network, state, x, trace, fw::Pass::train), y, 1e-12);
        Net grad = fw::zero_gradient(network);
        network.backward(x, trace, dy, given_dx, grad);
        check_equal(given_dx, dx, 1e-12);
        for_each_weight(expected, [&](const std::string& name, const auto& gradient) {
          INFO(name);
          check_equal(weight(grad, "net." + name), gradient, 1e-12);
        });
        fw::set_zero_parameters(expected);
      }
    }
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

TEST_CASE("fast weights of a recurrent net start and refuse as they say", "[networks]") {
  Net network = network_of(3, fast_weights({.hidden = 4}));
  start_at_identity(network, "net.recurrent.weight", 0.05);
  CHECK(weight(network, "net.recurrent.weight") == 0.05 * Matrix<double>::Identity(4, 4));
  CHECK_THROWS_WITH(start_at_identity(network, "net.input.weight"),
                    ContainsSubstring("no square weight net.input.weight"));
  const auto refused = [](const FastWeightsRnnOptions& o, const std::string& what) {
    CHECK_THROWS_WITH(network_of(3, fast_weights(o)), ContainsSubstring("net: " + what));
  };
  refused({.hidden = 0}, "hidden");
  refused({.hidden = 2, .inner = 0}, "inner");
  refused({.hidden = 2, .decay = not_a_number}, "decay");
  refused({.hidden = 2, .rate = not_a_number}, "rate");
  State other = network_of(3, fast_weights({.hidden = 5})).initial_state();
  Net::Trace trace;
  CHECK_THROWS_WITH(run(network, other, Matrix<double>::Ones(3, 1), trace),
                    ContainsSubstring("h in the state has 5 rows"));
}

}  // namespace
