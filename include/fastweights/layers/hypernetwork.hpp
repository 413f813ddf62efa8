#pragma once

#include <fastweights/layers/hypernetwork_checks.hpp>
#include <fastweights/layers/summed_heads.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI {

/// The order of the two tokens.
enum class TokenOrder {
  x_first,  ///< e1, which has x, is the first token
  z_first   ///< e2, which has z, is the first token
};

/// The form of a Hypernetwork.
struct HypernetworkForm {
  bool causal = true;                      ///< else both tokens read the writes of both
  TokenOrder order = TokenOrder::x_first;  ///< which token is first
};

/// A linear transformer block that computes a hypernetwork exactly, up to rounding: z determines
/// the matrix ω(z) that multiplies x.
///
///     y = A σ(ω(z) x)        ω(z) = Σ_m z^(m) Θ^(m)
///
/// The block has one head per program matrix Θ^(m), with d_k = 1, d_v = h and d_model = d + M + h +
/// o. A token has the blocks x | z | u | y. Token e1 = (x, 0, 1) writes Θ^(m) x with key 1 in head
/// m. Token e2 = (0, z, 0) reads it with query z^(m). W_P writes the sum ω(z) x to e2's u block,
/// and the MLP writes A σ(u) to its y block:
///
/// | weights of head m | nonzero entries |
/// |---|---|
/// | query, 1×d_model | 1 in column d + m, which holds z^(m) |
/// | key, 1×d_model | 1 in column d + M, the first of e1's ones |
/// | value, h×d_model | Θ^(m) in the columns of the x block |
/// | W_P, for all heads | I_h in the rows of the u block |
/// | up, down of the MLP | I_h in the columns of the u block, A in the rows of the y block |
///
///     const fw::Hypernetwork<double> net(theta, A);
///     const fw::DeltaRule<double> memory({.key_size = 1, .value_size = net.hidden()});
///     const fw::networks::Network<double> block = net.block<fw::Tanh>(memory);
///     Eigen::MatrixXd E = net.tokens(x, z), Y(E.rows(), 2);
///     block.forward(state, E, Y, trace);  // net.output(Y) is A tanh(ω(z) x)
///
/// Shapes: Θ^(m) h×d, A o×h, x d, z M, the output o. Cost: that of the block with M heads and two
/// tokens. Throws std::invalid_argument when a size does not fit. Throws it, with the reason, for
/// configurations that compute something else: e2 before e1 under a causal mask, and memories whose
/// output is not z^(m) times the written value (hypernetwork_checks.hpp: softmax, normalisers,
/// ELU+1 and decay by type, others by a trial with values from 5e-4 to 2e3). Linear attention as
/// fast weights: Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, eq. 15–17; hypernetworks: Ha,
/// Dai, Le 2016, arXiv 1609.09106.
template <class S> class Hypernetwork {
 public:
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  using Vector = Eigen::Matrix<S, Dynamic, 1>;
  static constexpr std::string_view name = "Hypernetwork";

  /// The weight banks θ and the matrix a. Throws std::invalid_argument when sizes do not fit.
  Hypernetwork(std::vector<Matrix> theta, Matrix a, HypernetworkForm form = {})
      : theta_(std::move(theta)), a_(std::move(a)), form_(form) {
    check_sizes();
    if (form.causal && form.order == TokenOrder::z_first)
      detail::reject_hypernetwork(
          "the order e2, e1 under a causal mask: e2 would read before e1 has written");
  }

  Index inputs() const { return theta_[0].cols(); }                     ///< d
  Index programs() const { return static_cast<Index>(theta_.size()); }  ///< M
  Index hidden() const { return a_.cols(); }                            ///< h
  Index outputs() const { return a_.rows(); }                           ///< o
  Index width() const { return u_block() + hidden() + outputs(); }      ///< d_model

  /// A σ(ω(z) x), evaluated directly, with σ of math/activations.hpp.
  template <class Activation> Vector evaluate(const Vector& x, const Vector& z) const {
    check_rows("x", x, inputs());
    check_rows("z", z, programs());
    Vector u = Vector::Zero(hidden()), activated(hidden());
    for (Index m = 0; m < programs(); ++m) u += z[m] * (theta_at(m) * x);
    Elementwise<Activation>::value(u, activated);
    return a_ * activated;
  }

  /// Throws std::invalid_argument, with the reason, for a memory that a block cannot be built with.
  template <Memory M> void check_memory(const M& memory) const {
    const auto read = memory.signature().read();
    const auto out = memory.signature().out();
    const Index key = std::get<0>(members(read)).rows;
    const Index value = std::get<0>(members(out)).rows;
    if (key != 1) detail::throw_mismatch(name, "the memory's key", key, "rows", 1, "every head");
    if (value != hidden())
      detail::throw_mismatch(name, "the memory's value", value, "rows", hidden(), "every head");
    detail::check_hypernetwork_memory(memory);
  }

  /// The block around a memory of hidden() value rows and one key row.
  template <class Activation, Memory M> networks::Network<S> block(const M& memory) const {
    check_memory(memory);
    networks::Builder<S> net;
    using Value = networks::Value<S>;
    const Value tokens = net.input(width());
    // Its keys are 1 or, without a program, 0.
    const Value x =
        tokens + networks::summed_heads(
                     tokens, "mixer", memory,
                     {.heads = programs(), .causal = form_.causal, .allow_unstable = true});
    const auto mlp = [&](const Value& in) {
      const Value u = networks::linear(in, "up", hidden());
      return networks::linear(networks::activate<Elementwise<Activation>>(u), "down", width());
    };
    networks::Network<S> block = net.build(x + networks::module("ffn", x, mlp));
    const AnyMemory<S> any(memory);
    for (networks::Weight<S>& weight : block.weights) {
      weight.value.setZero(weight.rows(), weight.cols());
      set(weight, any.written());
    }
    return block;
  }
  /// The block with linear attention as its memory.
  template <class Activation> networks::Network<S> block() const {
    return block<Activation>(LinearAttention<S>({.key_size = 1, .value_size = hidden()}));
  }

  /// e1 and e2 as columns, in the order of the form.
  Matrix tokens(const Vector& x, const Vector& z) const {
    check_rows("x", x, inputs());
    check_rows("z", z, programs());
    Matrix E = Matrix::Zero(width(), 2);
    E.col(1 - z_token()).head(inputs()) = x;
    E.col(1 - z_token()).tail(hidden() + outputs()).setOnes();
    E.col(z_token()).segment(inputs(), programs()) = z;
    return E;
  }

  /// The output A σ(ω(z) x): e2's y block in the block's output Y.
  Vector output(const Matrix& Y) const {
    check_rows("Y", Y, width());
    if (Y.cols() != 2)
      detail::throw_mismatch(name, "Y", Y.cols(), "columns", 2, "the hypernetwork");
    return Y.col(z_token()).tail(outputs());
  }

 private:
  Index u_block() const { return inputs() + programs(); }
  Index z_token() const { return form_.order == TokenOrder::x_first ? 1 : 0; }
  const Matrix& theta_at(Index m) const { return theta_[static_cast<std::size_t>(m)]; }

  // Sets one weight of the block; others stay 0.
  void set(networks::Weight<S>& weight, std::span<const SignatureMember> written) const {
    const std::string write = "mixer.write.";
    Matrix& w = weight.value;
    if (weight.name.starts_with("mixer.read.")) {
      w.middleCols(inputs(), programs()).setIdentity();
    } else if (weight.name == "mixer.output.weight") {
      w.middleRows(u_block(), hidden()).setIdentity();
    } else if (weight.name == "ffn.up.weight") {
      w.middleCols(u_block(), hidden()).setIdentity();
    } else if (weight.name == "ffn.down.weight") {
      w.bottomRows(outputs()) = a_;
    } else if (weight.name.starts_with(write)) {
      const std::string member =
          weight.name.substr(write.size(), weight.name.rfind('.') - write.size());
      for (const SignatureMember& each : written)
        if (each.name == member) set_write_weights(w, each.role);
    }
  }

  // Sets the slow weights of all heads for a key, a value or a strength. A strength is a sigmoid,
  // and sigmoid(64) is 1 in float and double.
  void set_write_weights(Matrix& weight, Role role) const {
    if (role == Role::value)
      for (Index m = 0; m < programs(); ++m)
        weight.block(m * hidden(), 0, hidden(), inputs()) = theta_at(m);
    else
      weight.col(u_block()).setConstant(role == Role::strength ? S(64) : S(1));
  }

  void check_sizes() const {
    if (theta_.empty())
      detail::throw_invalid({"Hypernetwork: theta has no matrices, expected at least 1"});
    detail::check_size<Dynamic>(name, "d", inputs());
    detail::check_size<Dynamic>(name, "h", hidden());
    detail::check_size<Dynamic>(name, "o", outputs());
    for (const Matrix& each : theta_) {
      check_rows("a matrix of theta", each, hidden());
      if (each.cols() != inputs())
        detail::throw_mismatch(name, "a matrix of theta", each.cols(), "columns", inputs(),
                               "the first of them");
    }
  }
  template <class X> static void check_rows(std::string_view what, const X& x, Index rows) {
    if (x.rows() != rows)
      detail::throw_mismatch(name, what, x.rows(), "rows", rows, "the hypernetwork");
  }

  std::vector<Matrix> theta_;
  Matrix a_;
  HypernetworkForm form_;
};

}  // namespace fw
