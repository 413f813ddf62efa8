#include <fastweights/networks/operations.hpp>

#include "case.hpp"

namespace reference {

namespace {

using Net = fw::networks::Network<double>;
using X = fw::networks::Value<double>;

// The file's name of each weight of the network.
const std::pair<const char*, const char*> names[] = {
    {"emb.weight", "p_emb__weight"},         {"net.input.weight", "p_U__weight"},
    {"net.recurrent.weight", "p_W__weight"}, {"head.0.weight", "p_head__0__weight"},
    {"head.2.weight", "p_head__2__weight"},  {"net.norm.weight", "p_ln__weight"},
    {"net.norm.bias", "p_ln__bias"},         {"head.0.bias", "p_head__0__bias"},
    {"head.2.bias", "p_head__2__bias"}};

Matrix& weight(Net& network, const std::string& name) {
  for (auto& each : network.weights)
    if (each.name == name) return each.value;
  throw std::logic_error("no weight " + name);
}

// Calls f(weight of the network, name in the file).
template <class F> void for_each_weight(Net& network, const F& f) {
  for (const auto& [ours, theirs] : names) f(weight(network, ours), theirs);
}

// Copies an array of one or two axes to a matrix, or back.
void copy(Array& from, Matrix& to) {
  if (from.shape.size() == 1)
    to = from.flat();
  else
    to = from.matrix();
}
void copy(const Matrix& from, Array& to) {
  if (to.shape.size() == 1)
    to.flat() = from.col(0);
  else
    to.matrix() = from;
}

// The whole classifier of the source: embedding, recurrent net, and a head with two linear maps and
// a ReLU. The output is [logits; h] of every token.
Net classifier(const Case& file, fw::FastWeightsForm form) {
  const auto axis = [&](const char* name, std::size_t i) { return file[name].axis(i); };
  fw::networks::Builder<double> net;
  const X x = embedding(net, "emb", axis("p_emb__weight", 0), axis("p_emb__weight", 1));
  const X h = fast_weights_rnn(x, "net",
                               {.hidden = axis("p_U__weight", 0),
                                .inner = std::stoll(file.setting("S")),
                                .decay = std::stod(file.setting("lam")),
                                .rate = std::stod(file.setting("eta")),
                                .form = form});
  const X inner = relu(linear(h, "head.0", axis("p_head__0__weight", 0), true));
  const X logits = linear(inner, "head.2", axis("p_head__2__weight", 0), true);
  Net network = net.build(fw::networks::concatenate<double>({logits, h}));
  for_each_weight(network, [&](Matrix& to, const char* name) {
    Array theirs = file[name];
    copy(theirs, to);
  });
  return network;
}

// The outputs of the last tokens of all sequences, and their gradients. `prefix` is "grad_" with
// the final hidden state's gradient and "gradout_" without.
void run(Case& file, fw::FastWeightsForm form, const std::string& prefix) {
  const Net network = classifier(file, form);
  Array logits = file.like("logits"), final_h = file.like("final_h");
  Array up_logits = file["up_logits"], up_h = file["up_final_h"];
  const auto tokens = file.integers("x_tokens");
  const std::vector<int> ids(tokens.begin(), tokens.end());
  const Index batch = logits.axis(0), classes = logits.axis(1), units = final_h.axis(1);
  const Index steps = Index(ids.size()) / batch;
  Matrix y(network.outputs(), batch * steps), dy = Matrix::Zero(y.rows(), y.cols());
  auto state = network.initial_state(batch);
  Net::Trace trace;
  network.forward(state, fw::Symbols(ids), y, trace, fw::Pass::train);
  for (Index b = 0; b < batch; ++b) {
    const Index last = (b + 1) * steps - 1;
    logits.columns().col(b) = y.col(last).head(classes);
    final_h.columns().col(b) = y.col(last).tail(units);
    dy.col(last).head(classes) = up_logits.columns().col(b);
    if (prefix == "grad_") dy.col(last).tail(units) = up_h.columns().col(b);
  }
  file.forward("logits", logits);
  file.forward("final_h", final_h);
  Net gradient = fw::zero_gradient(network);
  network.backward(trace, dy, gradient);
  for_each_weight(gradient, [&](const Matrix& each, const char* name) {
    Array ours = file.like(name);
    copy(each, ours);
    file.gradient(prefix + name, ours);
  });
}

void fast_weights_rnn(Case& file) {
  for (const auto form : {fw::FastWeightsForm::matrix, fw::FastWeightsForm::attention})
    for (const auto* prefix : {"grad_", "gradout_"}) run(file, form, prefix);
}

}  // namespace

std::map<std::string, Test> fast_weights_rnn_tests() {
  return {{"ba2016_fast_rnn_S1", fast_weights_rnn},
          {"ba2016_fast_rnn_S2", fast_weights_rnn},
          {"ba2016_fast_rnn_S3", fast_weights_rnn}};
}

}  // namespace reference
