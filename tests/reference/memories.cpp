#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>

#include "rule_run.hpp"

namespace reference {

namespace {

void linear_attention(Case& file) {
  run(file, {}, [](Index dk, Index dv, Index, Index) {
    return fw::LinearAttention<double>({dk, dv});
  });
}

void normalised_linear_attention(Case& file) {
  using Normaliser = fw::AttentionNormaliser<double>;
  Layout layout;
  layout.state["normaliser.sum"] = {"initial_z", "final_z"};
  run(file, layout, [](Index dk, Index dv, Index, Index) {
    return fw::LinearAttention<double, -1, -1, Normaliser>({dk, dv}, Normaliser{1e-10});
  });
}

// Retention is Hebbian memory with a different decay for every head.
void retention(Case& file) {
  run(file, {}, [](Index dk, Index dv, Index, Index h) {
    return fw::HebbianMemory<double>({dk, dv}, {1 - std::exp2(-5.0 - static_cast<double>(h)), 1.0});
  });
}

void delta_rule(Case& file) {
  run(file, {}, [](Index dk, Index dv, Index, Index) { return fw::DeltaRule<double>({dk, dv}); });
}

void vector_beta(Case& file) {
  run(file, {}, [](Index dk, Index dv, Index, Index) {
    return fw::DeltaRule<double, -1, -1, fw::NoNormaliser, fw::KeyValueVectorBeta>({dk, dv});
  });
}

void delta_net_core(Case& file) {
  Layout layout;
  layout.state["W"] = {"W0", "final_W", /*key_major=*/false};
  layout.scales_query = false;
  run(file, layout, [](Index dk, Index dv, Index, Index) {
    return fw::DeltaRule<double>({dk, dv});
  });
}

template <template <int, int> class Inputs> void gated_linear_attention(Case& file) {
  Layout layout;
  if (file.has("gk")) layout.inputs["decay"] = "gk";
  run(file, layout, [](Index dk, Index dv, Index, Index) {
    return fw::GatedLinearAttention<double, -1, -1, Inputs>({dk, dv});
  });
}

template <template <int, int> class Inputs> void gated_delta_rule(Case& file) {
  run(file, {}, [](Index dk, Index dv, Index, Index) {
    return fw::GatedDeltaRule<double, -1, -1, Inputs>({dk, dv});
  });
}

// The cache multiplies by 1/√K itself.
void softmax_attention(Case& file) {
  Layout layout;
  layout.scales_query = false;
  run(file, layout, [](Index dk, Index dv, Index steps, Index) {
    return fw::KeyValueCache<double>({dk, dv}, {steps, fw::WhenFull::refuse});
  });
}

// a = W_a x, b = W_b x; W ← σ(W + a bᵀ); y = W x.
template <class Activation> void programmer(Case& file) {
  Array x = file["x"], up = file["up_y"], y = file.like("y"), W0 = file["W0"],
        up_final = file["up_final_W"], final_W = file.like("final_W"), W_a = file["W_a"],
        W_b = file["W_b"];
  const fw::Programmer1991<double, -1, -1, Activation> m(
      {.key_size = W_b.axis(0), .value_size = W_a.axis(0)});
  for (const std::string kind : {"grad_", "gradout_"}) {
    Array dx = file.like("x"), dW0 = file.like("W0"), dW_a = file.like("W_a", 0),
          dW_b = file.like("W_b", 0);
    for (Index i = 0; i < x.axis(0); ++i) {
      const Matrix in = x.batch(i), a = W_a.matrix() * in, b = W_b.matrix() * in;
      Matrix da = Matrix::Zero(a.rows(), a.cols()), db = Matrix::Zero(b.rows(), b.cols()),
             din = Matrix::Zero(in.rows(), in.cols());
      auto state = fw::initial_state(m);
      auto ds = fw::zero_gradient(m);
      state.W = W0.matrix(i);
      if (kind == "grad_") ds.W = up_final.matrix(i);
      fw::Checkpoints<std::remove_cvref_t<decltype(m)>> checkpoints;
      fw::scan(m, state, {b, a}, {in}, {y.batch(i)}, checkpoints);
      final_W.matrix(i) = state.W;
      fw::backward(m, checkpoints, {b, a}, {in}, {up.batch(i)}, ds, {db, da}, {din});
      dW0.matrix(i) = ds.W;
      dW_a.matrix() += da * in.transpose();
      dW_b.matrix() += db * in.transpose();
      dx.batch(i) = din + W_a.matrix().transpose() * da + W_b.matrix().transpose() * db;
    }
    file.gradient(kind + "x", dx);
    file.gradient(kind + "W0", dW0);
    file.gradient(kind + "W_a", dW_a);
    file.gradient(kind + "W_b", dW_b);
  }
  file.forward("y", y);
  file.forward("final_W", final_W);
}

}  // namespace

std::map<std::string, Test> memory_tests() {
  return {{"linear_attn", linear_attention},
          {"linear_attn_normalized", normalised_linear_attention},
          {"delta_rule", delta_rule},
          {"delta_rule_sumnorm_keys", delta_rule},
          {"delta_rule_vector_beta", vector_beta},
          {"retention", retention},
          {"simple_gla", gated_linear_attention<fw::KeyValueDecay>},
          {"gla", gated_linear_attention<fw::KeyValueVectorDecay>},
          {"gated_delta_rule", gated_delta_rule<fw::KeyValueBetaDecay>},
          {"kda", gated_delta_rule<fw::KeyValueBetaVectorDecay>},
          {"softmax_attn", softmax_attention},
          {"idsia_delta_net_core", delta_net_core},
          {"own_fwp1991_identity", programmer<fw::Identity>},
          {"own_fwp1991_sigmoid", programmer<fw::Sigmoid>},
          {"own_fwp1991_tanh", programmer<fw::Tanh>}};
}

}  // namespace reference
