#pragma once

#include <fastweights/any_memory/table.hpp>
#include <fastweights/layers/fast_weights.hpp>

#include "case.hpp"

/// \file
/// A layer of the sources with its layer norm and residual, as a network.

namespace reference {

using Net = fw::networks::Network<double>;
using X = fw::networks::Value<double>;

// The weights of a network, or of its gradient, by name.
class Weights {
 public:
  explicit Weights(Net& network) : network_(network) {}
  Matrix& operator[](const std::string& name) {
    for (auto& weight : network_.weights)
      if (weight.name == name) return weight.value;
    throw std::logic_error("no weight " + name);
  }
  Matrix& projection(const std::string& name) { return (*this)[name + ".weight"]; }

 private:
  Net& network_;
};

// A whole layer of the sources: o = (LN(x) or x) + layer(LN(x) or x).
struct Residual {
  bool normed_branch, normed_residual;
};
inline const Residual algorithmic{true, false}, language_model{true, true},
    self_referential_residual{false, true};

template <class F> Net residual_network(Index width, const Residual& residual, const F& layer) {
  fw::networks::Builder<double> net;
  const X x = net.input(width);
  const X normed = layer_norm(x, "layer_norm", {.epsilon = 1e-5, .bias = true});
  Net network = net.build((residual.normed_residual ? normed : x) +
                          layer(residual.normed_branch ? normed : x));
  for (auto& weight : network.weights) weight.value.setZero(weight.rows(), weight.cols());
  return network;
}

// `for_each_part(weights, f)` calls f(name, i, first row, our block) for our blocks, which are rows
// of matrix i of the file's array `name`. With first row −1, our block is this matrix transposed.
template <class F, class Parts>
void run_layer(Case& file, const Residual& residual, const F& layer, const Parts& for_each_part) {
  Array x = file["x"], up = file["up_o"], o = file.like("o"), dx = file.like("x");
  Net network = residual_network(x.axis(2), residual, layer), gradient = fw::zero_gradient(network);
  Weights ours(network), dours(gradient);
  std::map<std::string, Array> gradients;
  for_each_part(ours, [&](const std::string& name, Index i, Index row, auto block) {
    Array theirs = file[name];
    if (row < 0)
      block = theirs.matrix(i).transpose();
    else
      block = theirs.matrix(i).middleRows(row, block.rows());
    gradients[name] = file.like(name, 0);
  });
  for (const std::string norm : {"weight", "bias"})
    ours["layer_norm." + norm] = file["p_layer_norm__" + norm].flat();

  Net::Trace trace;
  for (Index b = 0; b < x.axis(1); ++b) {
    const Matrix in = x.time_first(b), dy = up.time_first(b);
    Matrix y = 0 * in, din = 0 * in;
    auto state = network.initial_state();
    network.forward(state, in, y, trace, fw::Pass::train);
    network.backward(in, trace, dy, din, gradient);
    o.time_first(b) = y;
    dx.time_first(b) = din;
  }
  file.forward("o", o);
  file.gradient("grad_x", dx);

  for_each_part(dours, [&](const std::string& name, Index i, Index row, auto block) {
    // Heads may share an array.
    if (row < 0)
      gradients[name].matrix(i) += block.transpose();
    else
      gradients[name].matrix(i).middleRows(row, block.rows()) += block;
  });
  for (const std::string norm : {"weight", "bias"}) {
    gradients["p_layer_norm__" + norm] = file.like("p_layer_norm__" + norm);
    gradients["p_layer_norm__" + norm].flat() = dours["layer_norm." + norm];
  }
  for (const auto& [name, array] : gradients) file.gradient("grad_" + name, array);
}

// The rows of a projection for net `net`. Rows of keys and values are ordered by net, then head;
// rows of strengths by head, then net.
struct Part {
  std::string map;
  Index rows, net = 0, nets = 1;
  std::string record = "write";
  Index first_row(Index h, Index heads) const {
    return rows > 1 ? (net * heads + h) * rows : h * nets + net;
  }
};

// The rows of a slow net are ordered by head, then by part.
template <class F>
void for_each_slow_row(const std::string& slow, Weights& weights, Index heads,
                       const std::vector<Part>& parts, const F& f) {
  Index row = 0;
  for (Index h = 0; h < heads; ++h)
    for (const auto& part : parts) {
      f(slow, 0, row,
        weights.projection(part.record + '.' + part.map)
            .middleRows(part.first_row(h, heads), part.rows));
      row += part.rows;
    }
}

template <class F> void output_rows(const std::string& name, Weights& weights, const F& f) {
  Matrix& output = weights.projection("output");
  f(name, 0, 0, output.middleRows(0, output.rows()));
}

inline Index heads_of(const Case& file) { return std::stoll(file.setting("heads")); }
inline Index size_of_heads(const Case& file, const std::string& out) {
  return file[out].axis(1) / heads_of(file);
}

}  // namespace reference
