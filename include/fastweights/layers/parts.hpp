#pragma once

#include <fastweights/networks/operations.hpp>
#include <numeric>

/// \file
/// Parts that layers around a memory share. Every layer is a function of a value, a name and
/// options:
///
///     x = x + gated_delta_net(rms_norm(x, "norm", {}), "mixer", {.heads = {4, 4, 32, 64}});
///
/// Its weights have the published names, `name`.q_proj.weight and so on. With an empty name they
/// are in the module that is being built.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Heads of a layer. Consecutive value heads share a key head.
struct Heads {
  /// Key heads, value heads, and the rows of a key and of a value.
  Index key_heads = 1, heads = 1, d_k = 64, d_v = 64;

  /// Rows of all keys.
  Index keys() const { return key_heads * d_k; }
  /// Rows of all values.
  Index values() const { return heads * d_v; }
};

/// Query heads, of which heads / kv_heads consecutive ones share keys and values.
struct QueryHeads {
  /// Query heads, key heads, and the rows of a key and of a value.
  Index heads = 1, kv_heads = 1, d_k = 64, d_v = 64;

  /// Rows of all queries.
  Index queries() const { return heads * d_k; }
  /// Rows of all keys.
  Index keys() const { return kv_heads * d_k; }
  /// Rows of all values.
  Index values() const { return kv_heads * d_v; }
  /// Rows of the outputs of all heads.
  Index outputs() const { return heads * d_v; }
};

/// Causal convolution over the last `kernel` tokens, of every row by itself. 0: none.
struct ShortConvolution {
  Index kernel = 4;   ///< tokens
  bool bias = false;  ///< added to each row
};

/// RMS norm of each head's output. The heads share its weights.
struct OutputNorm {
  double epsilon = 1e-5;  ///< added to the mean square
  bool affine = true;     ///< has weights
};

/// Equal parts of the channels of a memory whose channels do not meet, for threads: at most 16,
/// each of a multiple of 32 rows, or one.
inline Index parts_of_channels(Index channels) {
  return channels % 32 == 0 ? std::gcd(channels / 32, Index(16)) : 1;
}

/// Functions of one number that options name.
enum class Activation {
  none,          ///< x
  silu,          ///< x σ(x)
  sigmoid,       ///< σ(x)
  relu,          ///< max(0, x)
  relu_squared,  ///< max(0, x)²
  tanh,          ///< tanh x
  log_sigmoid,   ///< log σ(x)
  elu_plus_one   ///< x + 1 for x > 0, else e^x
};

/// That function of x, entry by entry.
template <class S> Value<S> activation(const Value<S>& x, Activation kind) {
  switch (kind) {
    case Activation::none:
      return x;
    case Activation::silu:
      return silu(x);
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::relu:
      return relu(x);
    case Activation::relu_squared:
      return square(relu(x));
    case Activation::tanh:
      return tanh(x);
    case Activation::log_sigmoid:
      return log_sigmoid(x);
    case Activation::elu_plus_one:
      return relu(x) + exp(x - relu(x));
  }
  fw::detail::throw_invalid({x.builder->path(), ": unknown Activation"});
}

/// W x under NAME_proj.
template <class S>
Value<S> project(const Value<S>& x, const std::string& name, Index rows, bool bias = false) {
  return linear(x, name + "_proj", rows, bias);
}

/// A linear map of low rank: NAME_proj.0, then NAME_proj.1.
template <class S>
Value<S> low_rank(const Value<S>& x, const std::string& name, Index rank, Index rows,
                  bool bias = false) {
  return linear(linear(x, name + "_proj.0", rank), name + "_proj.1", rows, bias);
}

/// W x and its convolution NAME_conv1d, if there is one.
template <class S>
Value<S> convolved(const Value<S>& x, const std::string& name, Index rows,
                   const ShortConvolution& o) {
  const Value<S> y = project(x, name, rows);
  return o.kernel > 0 ? convolution(y, name + "_conv1d", o.kernel, o.bias) : y;
}

/// silu(conv(W x)), or silu(W x) without a convolution.
template <class S>
Value<S> activated(const Value<S>& x, const std::string& name, Index rows,
                   const ShortConvolution& o) {
  return silu(convolved(x, name, rows, o));
}

/// silu(conv(W x)), or W x without a convolution.
template <class S>
Value<S> maybe_activated(const Value<S>& x, const std::string& name, Index rows,
                         const ShortConvolution& o) {
  return o.kernel > 0 ? activated(x, name, rows, o) : project(x, name, rows);
}

/// Unit queries of `heads` heads, divided by √d_k.
template <class S> Value<S> unit_queries(const Value<S>& q, Index heads) {
  return (1 / std::sqrt(double(q.rows() / heads))) * l2(q, heads);
}

/// The write strength σ(W_b x), times 2 with negative_eigenvalues, so that a write can turn the
/// value of its key around. Grazzi et al. 2024, arXiv 2411.12537.
template <class S>
Value<S> strength(const Value<S>& x, Index rows, bool negative_eigenvalues = false) {
  const Value<S> b = sigmoid(project(x, "b", rows));
  return negative_eigenvalues ? 2.0 * b : b;
}

/// `rows` entries for every token that are all `value`; x has at least as many rows.
template <class S> Value<S> same_for_tokens(const Value<S>& x, Index rows, double value) {
  return affine(0, x.rows_of(0, rows), value);
}

/// The logarithm of softplus_decay.
template <class S>
Value<S> softplus_log_decay(const Value<S>& x, Index heads, const std::string& a_log = "A_log",
                            const std::string& bias = "dt_bias") {
  Builder<S>& net = *x.builder;
  const auto draw = [](double uniform, double) { return std::log(1 + 15 * uniform); };
  return -(softplus(x + parameter(net, bias, x.rows())) * exp(parameter(net, a_log, heads, draw)));
}

/// The decay factor of the gated delta rules and Mamba-2: exp(−exp(A_log) softplus(x + dt_bias)),
/// for every head, or for every key row of a head.
template <class S>
Value<S> softplus_decay(const Value<S>& x, Index heads, const std::string& a_log = "A_log",
                        const std::string& bias = "dt_bias") {
  return exp(softplus_log_decay(x, heads, a_log, bias));
}

/// log σ(x) / normaliser, the logarithm of a decay.
template <class S> Value<S> log_gate(const Value<S>& x, double normaliser) {
  if (!(normaliser > 0))
    fw::detail::throw_invalid({x.builder->path(), ": the normaliser of a gate is ",
                               fw::detail::number_text(normaliser), ", expected above 0"});
  return (1 / normaliser) * log_sigmoid(x);
}

/// The norm of every head by itself, with the weights `name`.weight if it is affine.
template <class S>
Value<S> head_norm(const Value<S>& o, const std::string& name, Index heads,
                   const OutputNorm& norm) {
  if (!norm.affine) return rms(o, heads, norm.epsilon);
  return rms_norm(o, name, {.epsilon = norm.epsilon, .groups = heads, .shared = true});
}

/// W_o (w ⊙ rms(o) ⊙ gate(W_g x)), or without a gate W_o (w ⊙ rms(o)); w is NAME.weight.
template <class S>
Value<S> gated_output(const Value<S>& x, const Value<S>& o, const std::string& name, Index heads,
                      const OutputNorm& norm, Activation gate) {
  Value<S> y = head_norm(o, name, heads, norm);
  if (gate != Activation::none) y = y * activation(project(x, "g", o.rows()), gate);
  return project(y, "o", x.rows());
}

}  // namespace fw::networks
