#include <fastweights/any_memory/table/gated_deltas.hpp>
#include <fastweights/continuous/density.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/layers/gated_short_convolution.hpp>
#include <fastweights/layers/joined_attention.hpp>
#include <fastweights/layers/mamba.hpp>
#include <fastweights/layers/relative_attention.hpp>
#include <fastweights/layers/rg_lru.hpp>
#include <fastweights/layers/rwkv4.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <fastweights/networks/operations.hpp>
#include <optional>

#include "checks.hpp"

namespace {

using namespace fw::networks;
using X = Value<float>;

// Recurrent nets, and other operations whose states are their own.
X recurrent(const X& x, Index rows) {
  const X y = gru(lstm(rnn(x, "rnn", rows), "lstm", rows), "gru", rows);
  const X z = dropout(fast_weights_rnn(y, "fast", {.hidden = rows}), 0.1);
  const X w = convolution(z, "conv", {.kernel = 3, .groups = 3, .dilation = 2});
  return feature_map(relative_attention(w, w, w, 2, 8), fw::EluPlusOne(), 2);
}

// A layer of every kind of state: a convolution, a fading memory, grouped attention, and experts.
Network<float> network() {
  constexpr Index width = 72, heads = 4, d = 18, hidden = 700;
  const auto mixer = [&](const X& x) {
    const X y = silu(convolution(linear(x, "in", width), "conv", 4));
    const X strength = sigmoid(linear(x, "beta", heads)), decay = sigmoid(linear(x, "g", heads));
    return memory(fw::GatedDeltaRule<float>({d, d}), {l2(y, heads), y, strength, decay},
                  {l2(y, heads)});
  };
  const auto attend = [&](const X& x) {
    return attention(rotary_embedding(linear(x, "q", width), heads, 8, 1e4), linear(x, "k", 2 * d),
                     linear(x, "v", 2 * d), 2, 64);
  };
  Builder<float> builder;
  X x = embedding(builder, "embed", 63, width);
  x = x + module("mixer", rms_norm(x, "norm", {}), mixer);
  x = x + module("attention", x, attend);
  x = x + module("recurrent", x, [&](const X& v) {
        return linear(recurrent(linear(v, "in", d), d), "out", width);
      });
  const X routing = top_k_experts(softmax(linear(x, "gate", 5)), {.experts = 2});
  return builder.build(linear(x + experts(x, normalise_routing(routing), hidden), "head", 63));
}

// Layers of Mamba, LFM2, Griffin and RWKV-4.
Network<float> network_of_channels() {
  Builder<float> builder;
  X x = embedding(builder, "embed", 63, 64);
  x = x + mamba(x, "mamba", {.channels = 128, .d_k = 8, .rank = 4, .norms = MambaNorms::plain});
  x = x + gated_short_convolution(x, "convolution");
  x = x + rg_lru_block(x, "griffin", {.channels = 64, .heads = 4});
  x = x + rwkv4_channel_mix(rwkv4_time_mix(x, "time_mix", 64), "channel_mix", 128);
  return builder.build(linear(x, "head", 63));
}

// The ∞-former's attention: a window, and a long-term memory behind it.
Network<float> network_of_long_term_memory() {
  constexpr Index d = 32, window = 8, chunk = 4, functions = 16;
  using Density = fw::MixtureDensity<float, fw::LearnedComponents<float>>;
  using Memory = fw::ContinuousMemory<float, Density>;
  Memory::Options options;
  options.d = d;
  options.chunk = chunk;
  options.contraction = fw::Contraction::fixed(0.9);  // the operator of a write stays the same
  const Memory memory(options, {functions, {0.1, 0.3}},
                      Density{fw::LearnedComponents<float>(functions, 1, true, 1e-3)});
  Builder<float> builder;
  const X x = embedding(builder, "embed", 63, d);
  const X near = relative_attention(x, "short_term", {.heads = 2, .window = window});
  const X both =
      joined_attention(x, near, fw::LongTermLayer({.heads = 2}, memory, fw::NoGate<float>()),
                       {.window = window, .chunk = chunk});
  return builder.build(linear(both, "head", 63));
}

// A network does not allocate after its first token, however its weights are kept; with a long-term
// memory, after its first chunks.
void check_network(const char* what, Network<float> model, std::optional<WeightType> weights = {},
                   Index roll_back = 0, int warm = 1) {
  fw::Random random(1);
  fw::initialise(model, random);
  if (weights) model.quantise(*weights);
  State state = model.initial_state({.roll_back = roll_back});
  Network<float>::Trace trace;
  Eigen::MatrixXf logits(63, 1);
  const auto read = [&](int symbol) {
    model.forward(state, fw::Symbols(&symbol, 1), logits, trace);
  };
  Eigen::setNbThreads(1);
  for (int t = 0; t < warm; ++t) read(0);
  const Usage streaming = usage_of([&] {
    for (Index t = 0; t < pass_count * sequence_length / 10; ++t) read(static_cast<int>(t % 63));
  });
  Eigen::setNbThreads(0);
  report(std::string("Network, ") + what, streaming, {});
}

}  // namespace

void check_networks() {
  check_network("weights as matrices", network());
  check_network("weights quantised", network(), WeightType::same);
  check_network("weights in bfloat16", network(), WeightType::bfloat16);
  check_network("weights in 8 bits", network(), WeightType::int8);
  check_network("layers with channels", network_of_channels());
  check_network("weights as matrices, with roll back", network(), {}, 5);
  check_network("a long-term memory", network_of_long_term_memory(), {}, 0, 24);
}
