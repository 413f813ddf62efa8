// Outputs of modules in an infer pass: those of a train pass, and of the equations of maps and
// norms.

#include <algorithm>
#include <map>

#include "networks/mixed_model.hpp"
#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;
using mixed_model::text;
using Names = std::vector<std::string>;

// All modules of a builder after a train pass, and the logits as "".
template <class S>
std::map<std::string, Matrix<S>> trained(const Network<S>& model, State state,
                                         const std::vector<int>& ids, const PassOptions& options) {
  typename Network<S>::Trace trace;
  std::map<std::string, Matrix<S>> values;
  Matrix<S>& y = values[""] = Matrix<S>(model.outputs(), Index(ids.size()));
  model.forward(state, ids, y, trace, {fw::Pass::train, options.lengths});
  model.for_each_module(trace, [&](const std::string& path, auto, auto out) {
    values.emplace(path, Matrix<S>(out));
  });
  return values;
}

// Three passes of several tokens, of sequences with different lengths and of single tokens.
template <class S> void check_trained(double limit) {
  const Network<S> model = mixed_model::drawn<S>();
  State state = model.initial_state(3);
  for (const std::vector<Index>& lengths :
       {std::vector<Index>{4, 4, 4}, std::vector<Index>{3, 0, 9}, std::vector<Index>{1, 1, 1}}) {
    const std::vector<int> ids = text(std::size_t(lengths[0] + lengths[1] + lengths[2]), 5);
    const PassOptions options{.lengths = lengths};
    const auto expected = trained(model, state, ids, options);
    Names names;
    for (const auto& [path, value] : expected) names.push_back(path);
    std::reverse(names.begin(), names.end());  // in no order of the pass
    State other = state, last = state;
    const auto hidden = model.hidden_states(state, ids, names, options);
    REQUIRE(hidden.size() == names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      INFO(names[i]);
      check_equal(hidden[i].template cast<double>(), expected.at(names[i]).template cast<double>(),
                  limit);
    }
    Matrix<S> y(model.outputs(), Index(ids.size()));
    typename Network<S>::Trace trace;
    model.forward(other, ids, y, trace, options);
    model.hidden_states(last, ids, {}, options);
    for (const State* each : {&state, &last}) {
      CHECK(numbers_of(*each) == numbers_of(other));
      CHECK(each->positions == other.positions);
    }
  }
}

TEST_CASE("hidden states of an infer pass are those of a train pass", "[networks]") {
  check_trained<double>(1e-12);
  check_trained<float>(1e-5);
}

Matrix<double> rms(Matrix<double> x) {
  for (Index t = 0; t < x.cols(); ++t) x.col(t) /= std::sqrt(x.col(t).squaredNorm() / 8 + 1e-6);
  return x;
}

TEST_CASE("linear maps, norms and embeddings are modules with the names of their weights",
          "[networks]") {
  const Net model = mixed_model::drawn<double>();
  const std::vector<int> ids = text(7, 6);
  State state = model.initial_state();
  const auto hidden =
      model.hidden_states(state, ids,
                          {"model.embed_tokens", "model.layers.2", "model.layers.3.norm",
                           "model.layers.3", "model.norm", "model.lm_head", "", "model.norm"});
  for (Index t = 0; t < 7; ++t)
    CHECK(hidden[0].col(t) ==
          model.weight("model.embed_tokens.weight").value.row(ids[std::size_t(t)]).transpose());
  check_equal(hidden[2], rms(hidden[1]), 1e-13);
  check_equal(hidden[4], rms(hidden[3]), 1e-13);
  check_equal(hidden[5], model.weight("model.lm_head.weight").value * hidden[4], 1e-13);
  CHECK(hidden[6] == hidden[5]);
  CHECK(hidden[7] == hidden[4]);  // a name twice

  const Names names = model.module_names();
  for (const char* each : {"model.layers.1.mixer", "model.layers.0.mixer.q_conv1d", "model.norm"})
    CHECK(std::count(names.begin(), names.end(), each) == 1);
  State all = model.initial_state();
  CHECK(model.hidden_states(all, ids, names).size() == names.size());
}

TEST_CASE("hidden states of a network of vectors, and of tokens that were taken back",
          "[networks]") {
  const Net net = network_of(4, [](const auto& in) {
    using Any = std::decay_t<decltype(in)>;
    const Any x = module("same", in, [](const Any& v) { return v; });
    const Any y = module("rows", x, [](const Any& v) { return v.rows_of(1, 2); });
    return module("shift", tanh(y), [](const Any& v) { return v + token_shift(v, "tokens"); });
  });
  fw::Random random(8);
  const Matrix<double> x = random_matrix(4, 5, random), more = random_matrix(4, 3, random);
  State state = net.initial_state({.roll_back = 3}), plain = net.initial_state();
  const Names names{"shift", "rows", "same", "shift"};
  net.hidden_states(state, x, names);
  net.hidden_states(plain, x, names);
  net.hidden_states(state, more, {"rows"});
  state.roll_back(3);
  const auto again = net.hidden_states(state, more, names);
  const auto expected = net.hidden_states(plain, more, names);
  for (std::size_t i = 0; i < names.size(); ++i) check_equal(again[i], expected[i], 1e-13);
  CHECK(again[1] == more.middleRows(1, 2));
  CHECK(again[2] == more);
  CHECK(again[3] == again[0]);
}

TEST_CASE("hidden states refuse an unknown name with those that exist, and keep the state",
          "[networks]") {
  const Net model = mixed_model::drawn<double>();
  const std::vector<int> ids = text(6, 4);
  State state = model.initial_state();
  const auto refused = [&](const Names& names, const std::string& message,
                           const PassOptions& options = {}) {
    const auto call = [&] { model.hidden_states(state, ids, names, options); };
    CHECK_THROWS_AS(call(), std::invalid_argument);
    CHECK_THROWS_WITH(call(), ContainsSubstring(message));
    CHECK(state.positions.isZero());
  };
  refused({"model.norm", "model.layers.3.attention"},
          "Network: has no module model.layers.3.attention; expected a name of module_names, such "
          "as model.layers.3.mlp, model.layers.3.mlp.down_proj, model.layers.3.mlp.gate_proj, "
          "model.layers.3.mlp.up_proj, model.layers.3.norm");
  refused({"model.layers.4"}, "such as model.layers.0, model.layers.0.mixer");
  refused({"norm"}, "more");
  refused({"model.norm"}, "a train pass", {fw::Pass::train});
  const Matrix<double> x(3, 2);
  CHECK_THROWS_WITH(model.hidden_states(state, x, {"model.norm"}), ContainsSubstring("symbols"));
  CHECK_THROWS_WITH(Net().hidden_states(state, ids, {""}), ContainsSubstring("is empty"));
  CHECK_THROWS_WITH(Net().module_names(), ContainsSubstring("is empty"));
}

}  // namespace
