#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/attention/relative_attention.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

#include "together.hpp"

namespace {

// A streaming step, then a training pass, each thread with its own state, trace and gradient.
template <class L> void check_layer(const char* what, L layer) {
  fw::Random random(4);
  fw::initialise(layer, random);
  const L& shared = layer;
  const MatrixXf x = random_matrix(layer.inputs(), 30, 5);
  check_same(what, [&](int) {
    MatrixXf y(x.rows(), 2 * x.cols());
    auto state = shared.initial_state();
    typename L::Trace trace;
    shared.forward(state, x.col(0), y.col(0), trace);
    shared.forward(state, x, y.leftCols(x.cols()), trace, fw::Pass::train);
    L gradient = shared;
    fw::set_zero_parameters(gradient);
    shared.backward(x, trace, y.leftCols(x.cols()), y.rightCols(x.cols()), gradient);
    return y;
  });
}

}  // namespace

void check_layers() {
  using Delta = fw::DeltaRule<float>;
  check_layer("FastWeightLayer: forward and backward",
              fw::FastWeightLayer<Delta, fw::L2Normalise>({.d_model = 12, .heads = 3},
                                                          Delta({.key_size = 4})));
  check_layer("RelativeAttention: forward and backward",
              fw::RelativeAttention<float>({.d_model = 12, .heads = 3, .window = 7}));
}
