#include <cmath>
#include <fastweights/algorithms/backward.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>

#include "case.hpp"

namespace reference {

namespace {

// The conventions of a source.
struct Layout {
  std::string initial = "initial_state", final = "final_state";
  bool key_major = true;     // states are [B, H, K, V]; else [B, H, dv, dk]
  bool scales_query = true;  // the source multiplies q by 1/√K
  // Maps names of a memory's inputs to names in the file.
  std::map<std::string_view, std::string> written = {
      {"key", "k"}, {"value", "v"}, {"beta", "beta"}, {"decay", "g"}};
};

// Copies the state of one head between array and memory.
void from_array(Array& array, bool key_major, Index b, Index h, Matrix& W) {
  if (key_major)
    W = array.key_major(b, h);
  else
    W = array.matrix(b * array.axis(1) + h);
}
void to_array(const Matrix& W, bool key_major, Index b, Index h, Array& array) {
  if (key_major)
    array.key_major(b, h) = W;
  else
    array.matrix(b * array.axis(1) + h) = W;
}

// The inputs of a memory, or their gradients, by the memory's names.
using Written = std::map<std::string_view, Array>;

// Head h of sequence b, as a record of sequences.
template <class R> R head_of(Written& arrays, Index b, Index h) {
  const auto member = [&]<std::size_t I>() -> fw::member_t<R, I> {
    Array& array = arrays.at(R::names[I]);
    if constexpr (fw::member_t<R, I>::RowsAtCompileTime == 1)
      return array.numbers(b, h);
    else
      return array.head(b, h);
  };
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return R{member.template operator()<I>()...};
  }
  (std::make_index_sequence<fw::member_count<R>>{});
}

// A file has the logarithms of decays: α = e^g, dg = α dα.
void exponentiate(Array& g) { g.flat() = g.flat().array().exp(); }
void gradient_of_logarithm(const Array& decay, Array& ddecay) {
  for (std::size_t i = 0; i < decay.values.size(); ++i) ddecay.values[i] *= decay.values[i];
}

// Runs every head h of every sequence of a file with the memory make(d_k, d_v, T, h).
template <class Make> void run(Case& file, const Layout& layout, const Make& make) {
  Array q = file["q"], up = file["up_o"], o = file.like("o");
  const Index dk = q.axis(3), dv = o.axis(3), steps = q.axis(1), heads = q.axis(2);
  using M = decltype(make(dk, dv, steps, 0));
  Written written;
  for (const auto name : fw::WriteSequence<M>::names) written[name] = file[layout.written.at(name)];
  const bool decays = written.contains("decay");
  if (decays) exponentiate(written["decay"]);
  const bool keeps_matrix = file.has(layout.initial), keeps_z = file.has("initial_z");
  const double scale = layout.scales_query ? 1 / std::sqrt(double(dk)) : 1;
  Array final_state = keeps_matrix ? file.like(layout.final) : Array{};
  Array final_z = keeps_z ? file.like("final_z") : Array{};

  for (const std::string kind : {"grad_", "gradout_"}) {
    if (!file.has(kind + "q")) continue;
    Array dq = file.like("q", 0);
    Written dwritten;
    for (const auto& [name, array] : written)
      dwritten[name] = file.like(layout.written.at(name), 0);
    Array dinitial = keeps_matrix ? file.like(layout.initial) : Array{};
    Array dz = keeps_z ? file.like("initial_z") : Array{};
    for (Index b = 0; b < q.axis(0); ++b)
      for (Index h = 0; h < heads; ++h) {
        const M m = make(dk, dv, steps, h);
        auto state = fw::initial_state(m);
        auto ds = fw::zero_gradient(m);
        if constexpr (requires { state.W; })
          if (keeps_matrix) {
            Array initial = file[layout.initial], up_final = file["up_" + layout.final];
            from_array(initial, layout.key_major, b, h, state.W);
            if (kind == "grad_") from_array(up_final, layout.key_major, b, h, ds.W);
          }
        if constexpr (requires { state.normaliser.sum; }) {
          Array z = file["initial_z"], up_z = file["up_final_z"];
          state.normaliser.sum = z.matrix(b).row(h);
          if (kind == "grad_") ds.normaliser.sum = up_z.matrix(b).row(h);
        }
        const Matrix scaled = scale * q.head(b, h);
        Matrix dscaled = Matrix::Zero(dk, steps);
        const auto inputs = head_of<fw::WriteSequence<M>>(written, b, h);
        fw::Checkpoints<M> checkpoints;
        fw::scan(m, state, inputs, {scaled}, {o.head(b, h)}, checkpoints);
        if constexpr (requires { state.W; }) {
          if (keeps_matrix) to_array(state.W, layout.key_major, b, h, final_state);
        }
        if constexpr (requires { state.normaliser.sum; })
          final_z.matrix(b).row(h) = state.normaliser.sum;
        fw::backward(m, checkpoints, inputs, {scaled}, {up.head(b, h)}, ds,
                     head_of<fw::WriteGradSequence<M>>(dwritten, b, h), {dscaled});
        dq.head(b, h) = scale * dscaled;
        if constexpr (requires { state.W; }) {
          if (keeps_matrix) to_array(ds.W, layout.key_major, b, h, dinitial);
        }
        if constexpr (requires { state.normaliser.sum; }) dz.matrix(b).row(h) = ds.normaliser.sum;
      }
    file.gradient(kind + "q", dq);
    if (decays) gradient_of_logarithm(written["decay"], dwritten["decay"]);
    for (const auto& [name, array] : dwritten) file.gradient(kind + layout.written.at(name), array);
    if (keeps_matrix) file.gradient(kind + layout.initial, dinitial);
    if (keeps_z) file.gradient(kind + "initial_z", dz);
  }
  file.forward("o", o);
  if (keeps_matrix) file.forward(layout.final, final_state);
  if (keeps_z) file.forward("final_z", final_z);
}

void linear_attention(Case& file) {
  run(file, {}, [](Index dk, Index dv, Index, Index) {
    return fw::LinearAttention<double>({dk, dv});
  });
}

void normalised_linear_attention(Case& file) {
  using Normaliser = fw::AttentionNormaliser<double>;
  run(file, {}, [](Index dk, Index dv, Index, Index) {
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
  run(file, {"W0", "final_W", /*key_major=*/false, /*scales_query=*/false},
      [](Index dk, Index dv, Index, Index) {
        return fw::DeltaRule<double>({dk, dv});
      });
}

template <template <int, int> class Inputs> void gated_linear_attention(Case& file) {
  Layout layout;
  if (file.has("gk")) layout.written["decay"] = "gk";
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
