#pragma once

#include <fastweights/io/weights.hpp>
#include <fastweights/networks/operations.hpp>

/// A feed-forward network behind a layer norm, with the names of data/pytorch_linear.safetensors.
/// One part is a record of the test's own, the other one a network.
struct PyTorchNetwork {
  struct Norm {
    Eigen::VectorXf weight = Eigen::VectorXf::Zero(12), bias = Eigen::VectorXf::Zero(12);
    static constexpr auto names = fw::names("weight", "bias");

    Eigen::MatrixXf operator()(const Eigen::MatrixXf& x) const {
      const Eigen::MatrixXf centred = x.rowwise() - x.colwise().mean();
      const Eigen::RowVectorXf scale =
          (centred.colwise().squaredNorm().array() / 12 + 1e-5f).rsqrt();
      return (weight.asDiagonal() * centred * scale.asDiagonal()).colwise() + bias;
    }
  };

  Norm norm;
  fw::networks::Network<float> ffn = feed_forward();
  static constexpr auto names = fw::names("norm", "ffn");

 private:
  // Its weights are zero.
  static fw::networks::Network<float> feed_forward() {
    fw::networks::Builder<float> net;
    auto built = net.build(linear(gelu(linear(net.input(12), "up", 24, true)), "down", 12, true));
    for (auto& weight : built.weights) weight.value.setZero(weight.rows(), weight.cols());
    return built;
  }
};

/// Loads the network from that file and computes x + ffn(norm(x)) of the file's inputs. Gives the
/// largest difference to PyTorch's outputs, relative to the largest of them; NaN stays NaN.
inline float pytorch_error(const fw::io::SafeTensors& file) {
  PyTorchNetwork net;
  fw::io::load_parameters(net.norm, file, "norm");
  fw::io::load_parameters(net.ffn, file, "ffn");
  const Eigen::MatrixXf x = file.matrix<float>("input").transpose();
  const Eigen::MatrixXf expected = file.matrix<float>("output").transpose();
  Eigen::MatrixXf y(12, x.cols());
  auto state = net.ffn.initial_state();
  fw::networks::Network<float>::Trace trace;
  net.ffn.forward(state, net.norm(x), y, trace);
  const Eigen::MatrixXf difference = y + x - expected;
  return difference.cwiseAbs().maxCoeff<Eigen::PropagateNaN>() / expected.cwiseAbs().maxCoeff();
}
