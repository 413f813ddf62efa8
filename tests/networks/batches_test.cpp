// Layers around memories: several sequences at once, and sequences in parts that are longer than
// what kernels take at a time.

#include <fastweights/any_memory/table.hpp>
#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/any_memory/table/sums.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/feed_forward.hpp>
#include <fastweights/layers/summed_heads.hpp>
#include <numeric>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;

X delta(const X& x, Index d) {
  return fast_weights(x, "mixer", fw::DeltaRule<double>({.key_size = d}),
                      {.heads = 2, .scale = 0.5, .bias = true, .norm = HeadNorm::rms},
                      fw::L2Normalise());
}
X recurrent(const X& x) {
  const auto rule = fw::make_memory<double>("RecurrentDeltaNet", {.key_size = 4, .value_size = 3});
  return fast_weights(x, "mixer", rule, {.heads = 2, .bias = true});
}
X summed(const X& x, bool causal) {
  return summed_heads(x, "mixer", fw::LinearAttention<double>({.key_size = 4, .value_size = 3}),
                      {.heads = 2, .causal = causal, .bias = true});
}
X gated(const X& x) {
  const auto rule = fw::make_memory<double>("GatedDeltaRule", {.key_size = 4, .value_size = 3});
  return fast_weights(x, "mixer", rule, {}, fw::L2Normalise());
}
X block(const X& in) {
  const X x = in + delta(rms_norm(in, "norm1", {}), 3);
  return x + feed_forward(rms_norm(x, "norm2", {}), "ffn",
                          {.hidden = 10, .activation = Activation::silu});
}

void check_batches(Index rows, const Function& f) {
  const Net network = network_of(rows, f);
  for (const Index sequences : {1, 2, 5})
    for (const Index steps : {1, 2, 9}) check_batch(network, sequences, steps);
}

TEST_CASE("several sequences at once give the results of each alone", "[networks]") {
  for (const Index d : {1, 3, 17}) check_batches(6, [&](const X& x) { return delta(x, d); });
  check_batches(6, recurrent);
  for (const bool causal : {true, false})
    check_batches(6, [&](const X& x) { return summed(x, causal); });
  check_batches(6, block);
  for (const Index kernel : {1, 2, 4})
    check_batches(3, [&](const X& x) { return convolution(x, "conv", kernel, true); });
}

// A trace that another network has used gives the same result as a new one.
void check_reused_trace(const Function& first, const Function& second) {
  const auto gradient_of = [](const Function& f, Net::Trace& trace) {
    const Net network = network_of(6, f);
    fw::Random random(4);
    const Matrix<double> x = random_matrix(6, 5, random), dy = random_matrix(6, 5, random);
    State state = network.initial_state();
    return train(network, state, x, dy, trace).dx;
  };
  Net::Trace used, unused;
  gradient_of(first, used);
  CHECK(gradient_of(second, used) == gradient_of(second, unused));
}

TEST_CASE("a trace can be reused by a network of another size", "[networks]") {
  const auto of_size = [](Index size) { return [=](const X& x) { return delta(x, size); }; };
  check_reused_trace(of_size(3), of_size(5));
  check_reused_trace([](const X& x) { return summed(x, true); }, of_size(2));
  check_reused_trace([](const X& x) { return summed(x, true); },
                     [](const X& x) { return summed(x, false); });
}

void check_parts(const Function& f) {
  const Net network = network_of(6, f);
  for (const Index sequences : {1, 3})
    for (const std::vector<Index>& lengths : {std::vector<Index>{5, 9}, {1, 1, 2, 1, 70}}) {
      INFO(sequences << " sequences in " << lengths.size() << " parts");
      const Index steps = std::accumulate(lengths.begin(), lengths.end(), Index(0));
      fw::Random random(3);
      const Matrix<double> x = random_matrix(6, sequences * steps, random);
      const Matrix<double> dy = random_matrix(6, sequences * steps, random);
      const InPieces whole(network, sequences, x, dy, {steps});
      const InPieces parts(network, sequences, x, dy, lengths);
      parts.check_same(whole);
      check_equal(numbers_of(parts.last), numbers_of(whole.last), 1e-12);
    }
}

TEST_CASE("parts of a sequence give the results of the whole", "[networks]") {
  check_parts([](const X& x) { return delta(x, 4); });
  check_parts(recurrent);
  check_parts([](const X& x) { return summed(x, true); });
  check_parts(gated);
  for (const Index kernel : {1, 2, 4})
    check_parts([&](const X& x) { return convolution(x, "conv", kernel, true); });
  check_parts([](const X& x) { return convolution(block(x), "conv", 4); });
}

}  // namespace
