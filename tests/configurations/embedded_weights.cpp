// Weights in a header that script/embed_weights wrote, in a program without files and exceptions
// (-DFASTWEIGHTS_FILES=0 -fno-exceptions -fno-rtti). Loads a layer, and computes what PyTorch did.
#include <cstdio>
#include <fastweights/io/weights.hpp>
#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/layers/projections/feed_forward.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <vector>

#include "pytorch_linear.hpp"

#ifdef _GLIBCXX_FILESYSTEM
#error "a header of files is included in spite of FASTWEIGHTS_FILES=0"
#endif

using fw::io::SafeTensors;
using fw::io::SafeTensorsWriter;

// The file's tensors of a feed-forward layer behind a layer norm.
struct Network {
  fw::LayerNorm<float> norm{12};
  fw::FeedForward<float> ffn{12, 24};
  static constexpr auto names = fw::names("norm", "ffn");
};

// A state to bytes, and back from them.
bool state_survives() {
  const fw::DeltaRule<float, 3, 4> memory;
  auto state = fw::initial_state(memory), loaded = state;
  state.W.setConstant(0.1f);
  state.W(3, 2) = -2;
  SafeTensorsWriter writer;
  fw::io::add_state(writer, state);
  const std::vector<std::byte> bytes = writer.bytes();
  fw::io::load_state(memory, loaded, SafeTensors::view(bytes));
  return loaded.W == state.W;
}

int main() {
  const SafeTensors file = SafeTensors::view(pytorch_linear());
  Network net;
  fw::io::load_parameters(net.norm, file, "norm");
  fw::io::load_parameters(net.ffn, file, "ffn");
  const Eigen::MatrixXf x = file.matrix<float>("input").transpose();
  const Eigen::MatrixXf expected = file.matrix<float>("output").transpose();
  Eigen::MatrixXf normed(12, x.cols()), y(12, x.cols());
  fw::LayerNorm<float>::Trace norm_trace;
  fw::FeedForward<float>::Trace ffn_trace;
  fw::Nothing none;
  net.norm.forward(none, x, normed, norm_trace);
  net.ffn.forward(none, normed, y, ffn_trace);
  const float error = (y + x - expected).cwiseAbs().maxCoeff();
  std::printf("largest error %.1e\n", double{error});
  return error <= 1e-6f * expected.cwiseAbs().maxCoeff() && state_survives() ? 0 : 1;
}
