#pragma once

#include <fastweights/io/weights.hpp>
#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/layers/projections/feed_forward.hpp>

/// A feed-forward layer behind a layer norm, with the names of data/pytorch_linear.safetensors.
struct PyTorchNetwork {
  fw::LayerNorm<float> norm{12};
  fw::FeedForward<float> ffn{12, 24};
  static constexpr auto names = fw::names("norm", "ffn");
};

/// Loads the network from that file and computes x + ffn(norm(x)) of the file's inputs. Gives the
/// largest difference to PyTorch's outputs, relative to the largest of them; NaN stays NaN.
inline float pytorch_error(const fw::io::SafeTensors& file) {
  PyTorchNetwork net;
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
  const Eigen::MatrixXf difference = y + x - expected;
  return difference.cwiseAbs().maxCoeff<Eigen::PropagateNaN>() / expected.cwiseAbs().maxCoeff();
}
