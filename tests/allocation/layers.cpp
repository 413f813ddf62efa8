#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/relative_attention.hpp>
#include <fastweights/layers/summed_heads.hpp>

#include "checks.hpp"

namespace {

// Counts allocations of a layer's steps, with one token for each of the state's sequences, and of
// its training, with a trace that has been used before.
template <class Layer>
void check_layer_from(Layer layer, const typename Layer::State& initial, Index sequences,
                      const std::string& what) {
  fw::Random random(1);
  fw::initialise(layer, random);
  const Eigen::MatrixXf x = Eigen::MatrixXf::Random(layer.inputs(), sequence_length);
  Eigen::MatrixXf y(layer.outputs(), sequence_length), dx(layer.inputs(), sequence_length);
  auto state = initial;
  typename Layer::Trace streamed, trained;
  Layer grad = fw::zero_gradient(layer);
  const auto step = [&](Index t) {
    layer.forward(state, x.middleCols(t, sequences), y.middleCols(t, sequences), streamed);
  };
  step(0);
  const Usage streaming = usage_of([&] {
    for (Index pass = 0; pass < pass_count; ++pass)
      for (Index t = 0; t < sequence_length; t += sequences) step(t);
  });
  const auto train = [&] {
    layer.forward(state, x, y, trained, fw::Pass::train);
    layer.backward(x, trained, y, dx, grad);
  };
  Eigen::setNbThreads(1);  // Eigen's parallel products allocate
  state = initial;
  train();
  const Usage training = usage_of([&] {
    for (int pass = 0; pass < 5; ++pass) train();
  });
  Eigen::setNbThreads(0);
  std::string label(Layer::name);
  label.append(" of ").append(std::to_string(layer.outputs())).append(what);
  std::printf("%-72s %s in steps, %ld allocations in training\n", label.c_str(),
              text(streaming).c_str(), training.allocations);
  if (!streaming.none() || training.allocations != 0) ++failures;
}

// One sequence, then several at once.
template <class Layer> void check_layer(const Layer& layer, const std::string& what) {
  check_layer_from(layer, layer.initial_state(), 1, what);
  check_layer_from(layer, layer.initial_state(5), 5, what + ", of 5 sequences");
}

// A network of one operation.
template <class F> void check_network_of(Index inputs, const F& f, const std::string& what) {
  fw::networks::Builder<float> builder;
  check_layer(builder.build(f(builder.input(inputs))), what);
}

void check_recurrent_of(Index units) {
  using X = fw::networks::Value<float>;
  check_network_of(
      100, [&](const X& x) { return rnn<fw::networks::Relu>(x, "net", units); }, ", rnn");
  check_network_of(
      100, [&](const X& x) { return lstm(x, "net", units); }, ", lstm");
  check_network_of(
      100, [&](const X& x) { return gru(x, "net", units); }, ", gru");
  const auto check_fast = [&](fw::FastWeightsForm form, const std::string& name) {
    const fw::networks::FastWeightsRnnOptions o{
        .hidden = units, .inner = 2, .learn_decay = true, .learn_rate = true, .form = form};
    check_network_of(
        50, [&](const X& x) { return fast_weights_rnn(x, "net", o); }, ", fast weights as " + name);
  };
  check_fast(fw::FastWeightsForm::matrix, "a matrix");
  check_fast(fw::FastWeightsForm::attention, "attention");
}

void check_layers_around_memories() {
  using X = fw::networks::Value<float>;
  const fw::DeltaRule<float> delta({.key_size = 16});
  check_network_of(
      32,
      [&](const X& x) {
        return fast_weights(x, "mixer", delta, {.heads = 2, .norm = fw::networks::HeadNorm::rms},
                            fw::L2Normalise());
      },
      ", fast_weights");
  check_network_of(
      32,
      [&](const X& x) {
        return summed_heads(x, "mixer", delta, {.heads = 2, .allow_unstable = true});
      },
      ", summed_heads");
}

// Steps run before and after the window is full.
void check_relative_attention(Index d, Index window) {
  check_network_of(
      d,
      [&](const fw::networks::Value<float>& x) {
        return relative_attention(x, "near", {.heads = 2, .window = window});
      },
      ", relative_attention");
}

}  // namespace

void check_layers() {
  check_layers_around_memories();
  check_network_of(
      32, [](const fw::networks::Value<float>& x) { return convolution(x, "conv", 4, true); },
      ", convolution");
  check_relative_attention(6, 10);
  check_relative_attention(64, 128);
  for (const Index units : {3, 20, 100}) check_recurrent_of(units);
}
