#include <fastweights/layers/projections/embedding.hpp>
#include <fastweights/layers/recurrent/fast_weights_rnn.hpp>

#include "case.hpp"

namespace reference {

namespace {

using Rnn = fw::FastWeightsRnn<double>;

// The whole classifier of the source: embedding, recurrent net, and a head with two linear maps and
// a ReLU on the last hidden state.
struct Classifier {
  fw::Embedding<double> embedding;
  Rnn rnn;
  fw::Linear<double> inner, outer;

  Classifier(Case& file, fw::FastWeightsForm form)
      : embedding(file["p_emb__weight"].axis(0), file["p_emb__weight"].axis(1)),
        rnn({.inputs = file["p_U__weight"].axis(1),
             .hidden = file["p_U__weight"].axis(0),
             .inner = std::stoll(file.setting("S")),
             .decay = std::stod(file.setting("lam")),
             .rate = std::stod(file.setting("eta")),
             .form = form}),
        inner(file["p_head__0__weight"].axis(1), file["p_head__0__weight"].axis(0)),
        outer(file["p_head__2__weight"].axis(1), file["p_head__2__weight"].axis(0)) {}

  // Calls f(name in the file, our parameter), matrices before vectors.
  template <class F> void for_each(const F& f) {
    f("p_emb__weight", embedding.weight);
    f("p_U__weight", rnn.input.weight);
    f("p_W__weight", rnn.recurrent.weight);
    f("p_head__0__weight", inner.weight);
    f("p_head__2__weight", outer.weight);
    f("p_ln__weight", rnn.norm.weight);
    f("p_ln__bias", rnn.norm.bias);
    f("p_head__0__bias", inner.bias);
    f("p_head__2__bias", outer.bias);
  }
  void set_zero() {
    for_each([](const char*, auto& p) { p.setZero(); });
  }
};

// Converts a row-major array of one or two axes to the type of our parameter.
template <class P> auto like_parameter(Array& array, const P&) {
  if constexpr (P::ColsAtCompileTime == 1)
    return array.flat();
  else
    return array.matrix();
}

// One sequence, and the gradients of ⟨up_logits, logits⟩ + ⟨up_h, h⟩ with respect to everything.
void run_sequence(const Classifier& model, const std::vector<int>& ids, Eigen::VectorXd& h,
                  Eigen::VectorXd& logits, const Eigen::VectorXd& up_logits,
                  const Eigen::VectorXd& up_h, Classifier& grad) {
  const Index steps = Index(ids.size()), d = model.rnn.inputs(), r = model.rnn.outputs();
  Matrix x(d, steps), y(r, steps), dy = Matrix::Zero(r, steps), dx(d, steps);
  Rnn::Trace trace;
  auto state = model.rnn.initial_state();
  fw::Nothing none;
  model.embedding.forward(ids, x);
  model.rnn.forward(state, x, y, trace, fw::Pass::train);
  h = y.col(steps - 1);
  Eigen::VectorXd a(model.inner.outputs());
  model.inner.forward(none, h, a, none);
  const Eigen::VectorXd rectified = a.cwiseMax(0);
  model.outer.forward(none, rectified, logits, none);

  Eigen::VectorXd da(a.size()), dh(r);
  model.outer.backward(rectified, none, up_logits, da, grad.outer);
  da.array() *= (a.array() > 0).cast<double>();
  model.inner.backward(h, none, da, dh, grad.inner);
  dy.col(steps - 1) = dh + up_h;
  model.rnn.backward(x, trace, dy, dx, grad.rnn);
  model.embedding.backward(ids, dx, grad.embedding);
}

// `prefix` is "grad_" with the final hidden state's gradient and "gradout_" without.
void run(Case& file, fw::FastWeightsForm form, const std::string& prefix) {
  Classifier model(file, form);
  model.for_each([&](const char* name, auto& p) {
    Array theirs = file[name];
    p = like_parameter(theirs, p);
  });
  Classifier grad = model;
  grad.set_zero();
  Array logits = file.like("logits"), final_h = file.like("final_h");
  Array up_logits = file["up_logits"], up_h = file["up_final_h"];
  const auto tokens = file.integers("x_tokens");
  const Index batch = logits.axis(0), steps = Index(tokens.size()) / batch;
  const double with_h = prefix == "grad_" ? 1 : 0;
  for (Index b = 0; b < batch; ++b) {
    const std::vector<int> ids(tokens.begin() + b * steps, tokens.begin() + (b + 1) * steps);
    Eigen::VectorXd h, out(logits.axis(1));
    run_sequence(model, ids, h, out, up_logits.matrix().row(b).transpose(),
                 with_h * up_h.matrix().row(b).transpose(), grad);
    logits.matrix().row(b) = out.transpose();
    final_h.matrix().row(b) = h.transpose();
  }
  file.forward("logits", logits);
  file.forward("final_h", final_h);
  grad.for_each([&](const char* name, auto& p) {
    Array ours = file.like(name);
    like_parameter(ours, p) = p;
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
