#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/fast_weights.hpp>
#include <fastweights/layers/relative_attention.hpp>

#include "together.hpp"

namespace {

using fw::networks::Network;

// A streaming step, then a training pass, each thread with its own state, trace and gradient.
template <class F> void check_layer(const char* what, const F& layer) {
  fw::networks::Builder<float> net;
  Network<float> network = net.build(layer(net.input(12)));
  fw::Random random(4);
  fw::initialise(network, random);
  const Network<float>& shared = network;
  const MatrixXf x = random_matrix(12, 30, 5);
  check_same(what, [&](int) {
    MatrixXf y(x.rows(), 2 * x.cols());
    auto state = shared.initial_state();
    Network<float>::Trace trace;
    shared.forward(state, x.col(0), y.col(0), trace);
    shared.forward(state, x, y.leftCols(x.cols()), trace, fw::Pass::train);
    Network<float> gradient = fw::zero_gradient(shared);
    shared.backward(x, trace, y.leftCols(x.cols()), y.rightCols(x.cols()), gradient);
    return y;
  });
}

}  // namespace

void check_layers() {
  check_layer("fast_weights: forward and backward", [](const auto& x) {
    return fast_weights(x, "mixer", fw::DeltaRule<float>({.key_size = 4}), {.heads = 3},
                        fw::L2Normalise());
  });
  check_layer("relative_attention: forward and backward", [](const auto& x) {
    return relative_attention(x, "near", {.heads = 3, .window = 7});
  });
}
