#pragma once

#include <fastweights/networks/operations/routing.hpp>
#include <fastweights/networks/operations/weights.hpp>

/// \file
/// A mixture of experts: feed-forward networks that see only the tokens that chose them. Shazeer et
/// al. 2017, arXiv 1701.06538, eq. 1.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The rows of a weight that belong to one expert.
struct ExpertRows {
  std::size_t weight;         ///< index among the weights of the operation
  Index first = 0, rows = 0;  ///< the first row, and how many
};

/// The activation f of experts, without its type: the experts are compiled once for all of them.
template <class S> struct ExpertActivation {
  void (*value)(const Matrix<S>& x, Matrix<S>& y);       ///< y = f(x)
  void (*vjp)(const Matrix<S>& x, Matrix<S>& gradient);  ///< of y, becomes that of x

  /// Of F of math/elementwise.hpp, or of your own.
  template <class F> static ExpertActivation of() {
    return {[](const Matrix<S>& x, Matrix<S>& y) { F::value(x, y); },
            [](const Matrix<S>& x, Matrix<S>& gradient) { F::vjp(x, gradient); }};
  }
};

/// y = Σ_e r_e W_down (f(W_gate x) ⊙ W_up x), over the experts e with r_e ≠ 0. Without a gate,
/// f(W_up x). The inputs are x and r.
template <class S> struct RunExperts final : Operation<S> {
  /// The rows of one expert in the three weights.
  struct Expert {
    /// W_gate, W_up and W_down.
    ExpertRows gate, up, down;
  };
  ExpertActivation<S> f;        ///< of the hidden rows
  std::vector<Expert> experts;  ///< their rows; empty if they are in two stacks
  bool gated;                   ///< whether there is a W_gate
  /// The maps of stacks: W_gate, then W_up of every expert in the first weight, and W_down in the
  /// second.
  Index stacked = 0, hidden_rows = 0, out_rows = 0;

  RunExperts(const ExpertActivation<S>& a, std::vector<Expert> e, bool g)
      : f(a), experts(std::move(e)), gated(g) {}
  /// The maps of `n` stacked experts. Computes their rows, since a file may have any number of
  /// them.
  RunExperts(const ExpertActivation<S>& a, Index n, Index hidden, Index out)
      : f(a), gated(true), stacked(n), hidden_rows(hidden), out_rows(out) {}

  /// The number of experts.
  Index count() const { return stacked > 0 ? stacked : Index(experts.size()); }
  /// The rows of one.
  Expert expert(Index e) const {
    const Index h = hidden_rows;
    if (stacked == 0) return experts[std::size_t(e)];
    return {{0, 2 * e * h, h}, {0, (2 * e + 1) * h, h}, {1, e * out_rows, out_rows}};
  }

  bool takes_quantised_weight(std::size_t) const override { return true; }
  void forward(const Forward<S>& run) const override {
    auto y = run.out();
    y.setZero();
    Hidden& hidden = run.template own_trace<Hidden>();
    for (Index e = 0; e < count(); ++e)
      if (compute(run, e, hidden))
        for (std::size_t i = 0; i < hidden.tokens.size(); ++i)
          y.col(hidden.tokens[i]) += run.in(1)(e, hidden.tokens[i]) * hidden.out.col(Index(i));
  }

  void backward(const Backward<S>& run) const override {
    auto dx = run.din(0), dr = run.din(1);
    Hidden& hidden = run.template own_trace<Hidden>();
    for (Index e = 0; e < count(); ++e) {
      if (!compute(run, e, hidden)) continue;
      const std::vector<Index>& tokens = hidden.tokens;
      Matrix<S> dout = run.dout()(Eigen::all, tokens);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        dr(e, tokens[i]) += dout.col(Index(i)).cwiseProduct(hidden.out.col(Index(i))).sum();
        dout.col(Index(i)) *= run.in(1)(e, tokens[i]);
      }
      const Matrix<S> dhidden = backward(run, expert(e), dout, hidden);
      for (std::size_t i = 0; i < tokens.size(); ++i) dx.col(tokens[i]) += dhidden.col(Index(i));
    }
  }
  std::unique_ptr<OperationTrace> make_trace() const override { return std::make_unique<Hidden>(); }

 private:
  // One expert's tokens and what it computes of them. Reused, so that a step does not allocate.
  struct Hidden : OperationTrace {
    std::vector<Index> tokens;
    Matrix<S> x, gate, up, active, product, out;
  };

  static auto rows(const Forward<S>& run, const ExpertRows& part) {
    return run.weight(part.weight).middleRows(part.first, part.rows);
  }
  static auto drows(const Backward<S>& run, const ExpertRows& part) {
    return run.dweight(part.weight).middleRows(part.first, part.rows);
  }
  static void multiply(const Forward<S>& run, const ExpertRows& part, const Matrix<S>& x,
                       Matrix<S>& y) {
    y.resize(part.rows, x.cols());
    if (const auto* quantised = run.quantised_weight(part.weight))
      quantised->multiply_rows(part.first, x, y);
    else
      fw::detail::set_product(y, rows(run, part), x, fw::detail::one_block);
  }

  // False if no token chose the expert.
  bool compute(const Forward<S>& run, Index e, Hidden& hidden) const {
    const auto x = run.in(), routing = run.in(1);
    const Expert of = expert(e);
    hidden.tokens.clear();
    for (Index t = 0; t < x.cols(); ++t)
      if (routing(e, t) != S(0)) hidden.tokens.push_back(t);
    if (hidden.tokens.empty()) return false;
    hidden.x.resize(x.rows(), Index(hidden.tokens.size()));
    for (std::size_t i = 0; i < hidden.tokens.size(); ++i)
      hidden.x.col(Index(i)) = x.col(hidden.tokens[i]);
    multiply(run, of.up, hidden.x, hidden.up);
    if (gated) multiply(run, of.gate, hidden.x, hidden.gate);
    const Matrix<S>& before = gated ? hidden.gate : hidden.up;
    hidden.active.resize(before.rows(), before.cols());
    f.value(before, hidden.active);
    hidden.product = hidden.active;
    if (gated) hidden.product.array() *= hidden.up.array();
    multiply(run, of.down, hidden.product, hidden.out);
    return true;
  }

  // For one expert: adds to the gradients of its weights; the gradient of its tokens.
  Matrix<S> backward(const Backward<S>& run, const Expert& of, const Matrix<S>& dout,
                     const Hidden& hidden) const {
    drows(run, of.down).noalias() += dout * hidden.product.transpose();
    const Matrix<S> dproduct = rows(run, of.down).transpose() * dout;
    Matrix<S> dactive = gated ? Matrix<S>(dproduct.cwiseProduct(hidden.up)) : dproduct;
    f.vjp(gated ? hidden.gate : hidden.up, dactive);
    const ExpertRows& first = gated ? of.gate : of.up;
    drows(run, first).noalias() += dactive * hidden.x.transpose();
    Matrix<S> dhidden = rows(run, first).transpose() * dactive;
    if (gated) {
      const Matrix<S> dup = dproduct.cwiseProduct(hidden.active);
      drows(run, of.up).noalias() += dup * hidden.x.transpose();
      dhidden.noalias() += rows(run, of.up).transpose() * dup;
    }
    return dhidden;
  }
};

/// Names of the three maps of an expert, after the expert's number: experts.3.gate_proj.weight.
struct ExpertNames {
  /// The sizes of the list, and of the maps of an expert.
  std::string experts = "experts", gate = "gate_proj", up = "up_proj", down = "down_proj";
};

/// Experts with weights of their own, at most 65536: a builder keeps a record of each. An empty
/// name of the gate: without one.
template <class F = fw::Silu, class S>
Value<S> experts(const Value<S>& x, const Value<S>& routing, Index hidden,
                 const ExpertNames& names = {}) {
  using Op = RunExperts<S>;
  Builder<S>& builder = *x.builder;
  const bool gated = !names.gate.empty();
  if (routing.rows() > 65536)
    fw::detail::throw_invalid({builder.path(names.experts), ": ", std::to_string(routing.rows()),
                               " experts, expected at most 65536"});
  std::vector<typename Op::Expert> parts;
  std::vector<std::size_t> weights;
  const auto add = [&](Index e, const std::string& name, Index rows, Index cols) {
    weights.push_back(
        builder.weight(names.experts + '.' + std::to_string(e) + '.' + name + ".weight",
                       {rows, cols}, uniform_initialiser(1 / std::sqrt(double(cols)))));
    return ExpertRows{weights.size() - 1, 0, rows};
  };
  for (Index e = 0; e < routing.rows(); ++e) {
    typename Op::Expert expert{};
    if (gated) expert.gate = add(e, names.gate, hidden, x.rows());
    expert.up = add(e, names.up, hidden, x.rows());
    expert.down = add(e, names.down, x.rows(), hidden);
    parts.push_back(expert);
  }
  const auto f = ExpertActivation<S>::template of<F>();
  return builder.add(Op(f, std::move(parts), gated), x.rows(), {x, routing}, std::move(weights));
}

/// Experts whose weights are two tensors of rank 3, under these names: [experts, gate and up rows,
/// d] and [experts, d, hidden]. What it costs before the weights are loaded does not grow with
/// their number.
template <class F = fw::Silu, class S>
Value<S> stacked_experts(const Value<S>& x, const Value<S>& routing, Index hidden,
                         const std::string& first, const std::string& second) {
  using Op = RunExperts<S>;
  Builder<S>& builder = *x.builder;
  const Index n = routing.rows(), d = x.rows();
  if (hidden < 1 || hidden > Index(1) << 31)  // no overflow in the products below
    fw::detail::throw_invalid({builder.path(first), ": has ", std::to_string(hidden), " rows"});
  const std::size_t in =
      builder.weight(first, {n, 2 * hidden, d}, uniform_initialiser(1 / std::sqrt(double(d))));
  const std::size_t out =
      builder.weight(second, {n, d, hidden}, uniform_initialiser(1 / std::sqrt(double(hidden))));
  const auto f = ExpertActivation<S>::template of<F>();
  return builder.add(Op(f, n, hidden, d), d, {x, routing}, {in, out});
}

}  // namespace fw::networks
