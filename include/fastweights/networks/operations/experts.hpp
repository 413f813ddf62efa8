#pragma once

#include <algorithm>
#include <fastweights/networks/operations/elementwise.hpp>
#include <fastweights/networks/operations/weights.hpp>
#include <numeric>

/// \file
/// A mixture of experts: routing weights, of which few are not 0, and feed-forward networks that
/// see only the tokens that chose them. Shazeer et al. 2017, arXiv 1701.06538, eq. 1.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Each of `groups` equal parts through a softmax.
template <class S> struct Softmax final : Operation<S> {
  Index groups;

  explicit Softmax(Index g) : groups(g) {}
  void forward(const Forward<S>& run) const override {
    const auto x = run.in();
    auto y = run.out();
    const Index d = x.rows() / groups;
    for (Index t = 0; t < x.cols(); ++t)
      for (Index g = 0; g < groups; ++g) {
        const auto xg = x.col(t).segment(g * d, d).array();
        auto yg = y.col(t).segment(g * d, d).array();
        yg = (xg - xg.maxCoeff()).exp();
        yg /= yg.sum();
      }
  }
  void backward(const Backward<S>& run) const override {
    const auto y = run.out();
    const auto dy = run.dout();
    auto dx = run.din();
    const Index d = dx.rows() / groups;
    for (Index t = 0; t < dx.cols(); ++t)
      for (Index g = 0; g < groups; ++g) {
        const auto yg = y.col(t).segment(g * d, d).array();
        const auto dyg = dy.col(t).segment(g * d, d).array();
        dx.col(t).segment(g * d, d).array() += yg * (dyg - (yg * dyg).sum());
      }
  }
};
template <class S> Value<S> softmax(const Value<S>& x, Index groups = 1) {
  return x.builder->add(Softmax<S>(groups), x.rows(), {x});
}

/// How tokens choose experts.
struct Choice {
  Index experts = 1;      ///< k that a token chooses
  Index groups = 1;       ///< equal groups of experts …
  Index best_groups = 1;  ///< … of which those with the largest sum of two best scores take part
};

/// Keeps the k largest of a token's scores and sets the others to 0. The choice is made by score +
/// bias, if there is a second input; a bias has no gradient. DeepSeek-AI 2024, arXiv 2412.19437,
/// eq. 14 to 16.
template <class S> struct ChooseExperts final : Operation<S> {
  Choice choice;

  explicit ChooseExperts(const Choice& c) : choice(c) {}
  void forward(const Forward<S>& run) const override {
    const auto scores = run.in();
    auto y = run.out();
    y.setZero();
    for (Index t = 0; t < scores.cols(); ++t)
      for (const Index e : chosen(run, t)) y(e, t) = scores(e, t);
  }
  void backward(const Backward<S>& run) const override {
    const auto dy = run.dout();
    auto dx = run.din();
    for (Index t = 0; t < dy.cols(); ++t)
      for (const Index e : chosen(run, t)) dx(e, t) += dy(e, t);
  }

 private:
  std::vector<Index> chosen(const Forward<S>& run, Index t) const {
    using Vector = Eigen::Matrix<S, Dynamic, 1>;
    Vector by = run.in().col(t);
    if (run.node.in.size() > 1) by += run.in(1).col(0);
    const auto best = [](const Vector& scores, Index k) {
      std::vector<Index> order(static_cast<std::size_t>(scores.size()));
      std::iota(order.begin(), order.end(), Index(0));
      std::stable_sort(order.begin(), order.end(),
                       [&](Index a, Index b) { return scores[a] > scores[b]; });
      order.resize(std::size_t(k));
      return order;
    };
    if (choice.best_groups < choice.groups) {
      const Index size = by.size() / choice.groups;
      Vector sums(choice.groups);
      for (Index g = 0; g < choice.groups; ++g) {
        const Vector group = by.segment(g * size, size);
        sums[g] = 0;
        for (const Index i : best(group, std::min<Index>(2, size))) sums[g] += group[i];
      }
      Vector masked = Vector::Constant(by.size(), -std::numeric_limits<S>::infinity());
      for (const Index g : best(sums, choice.best_groups))
        masked.segment(g * size, size) = by.segment(g * size, size);
      by = masked;
    }
    return best(by, choice.experts);
  }
};
template <class S>
Value<S> choose_experts(const Value<S>& scores, const Choice& choice,
                        const std::vector<Value<S>>& bias = {}) {
  if (choice.experts < 1 || choice.experts > scores.rows() || choice.groups < 1 ||
      scores.rows() % choice.groups != 0 || choice.best_groups < 1)
    fw::detail::throw_invalid(
        {scores.builder->path(), ": cannot choose ", std::to_string(choice.experts), " of ",
         std::to_string(scores.rows()), " experts in ", std::to_string(choice.groups), " groups"});
  std::vector<Value<S>> in{scores};
  in.insert(in.end(), bias.begin(), bias.end());
  return scores.builder->add(ChooseExperts<S>(choice), scores.rows(), std::move(in));
}

/// x / (Σ x + ε), for the weights of the chosen experts.
template <class S> struct SumToOne final : Operation<S> {
  S epsilon;

  explicit SumToOne(double e) : epsilon(S(e)) {}
  void forward(const Forward<S>& run) const override {
    for (Index t = 0; t < run.in().cols(); ++t)
      run.out().col(t) = run.in().col(t) / (run.in().col(t).sum() + epsilon);
  }
  void backward(const Backward<S>& run) const override {
    for (Index t = 0; t < run.in().cols(); ++t) {
      const S along = run.dout().col(t).dot(run.out().col(t));
      run.din().col(t).array() +=
          (run.dout().col(t).array() - along) / (run.in().col(t).sum() + epsilon);
    }
  }
};
template <class S> Value<S> sum_to_one(const Value<S>& x, double epsilon = 0) {
  return x.builder->add(SumToOne<S>(epsilon), x.rows(), {x});
}

/// The rows of a weight that belong to one expert.
struct ExpertRows {
  std::size_t weight;  ///< index among the weights of the operation
  Index first = 0, rows = 0;
};

/// y = Σ_e r_e W_down (f(W_gate x) ⊙ W_up x), over the experts e with r_e ≠ 0. Without a gate,
/// f(W_up x). The inputs are x and r.
template <class S, class F> struct RunExperts final : Operation<S> {
  struct Expert {
    ExpertRows gate, up, down;
  };
  std::vector<Expert> experts;
  bool gated;

  RunExperts(std::vector<Expert> e, bool g) : experts(std::move(e)), gated(g) {}

  void forward(const Forward<S>& run) const override {
    auto y = run.out();
    y.setZero();
    Hidden hidden;
    for (std::size_t e = 0; e < experts.size(); ++e) {
      const std::vector<Index> tokens = tokens_of(run, Index(e));
      if (tokens.empty()) continue;
      compute(run, experts[e], tokens, hidden);
      const Matrix<S> out = rows(run, experts[e].down) * hidden.product;
      for (std::size_t i = 0; i < tokens.size(); ++i)
        y.col(tokens[i]) += run.in(1)(Index(e), tokens[i]) * out.col(Index(i));
    }
  }

  void backward(const Backward<S>& run) const override {
    auto dx = run.din(0), dr = run.din(1);
    Hidden hidden;
    for (std::size_t e = 0; e < experts.size(); ++e) {
      const Expert& expert = experts[e];
      const std::vector<Index> tokens = tokens_of(run, Index(e));
      if (tokens.empty()) continue;
      compute(run, expert, tokens, hidden);
      const Matrix<S> out = rows(run, expert.down) * hidden.product;
      Matrix<S> dout = run.dout()(Eigen::all, tokens);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        dr(Index(e), tokens[i]) += dout.col(Index(i)).dot(out.col(Index(i)));
        dout.col(Index(i)) *= run.in(1)(Index(e), tokens[i]);
      }
      drows(run, expert.down).noalias() += dout * hidden.product.transpose();
      const Matrix<S> dproduct = rows(run, expert.down).transpose() * dout;
      Matrix<S> dactive = gated ? Matrix<S>(dproduct.cwiseProduct(hidden.up)) : dproduct;
      F::vjp(gated ? hidden.gate : hidden.up, dactive);
      const ExpertRows& first = gated ? expert.gate : expert.up;
      drows(run, first).noalias() += dactive * hidden.x.transpose();
      Matrix<S> dhidden = rows(run, first).transpose() * dactive;
      if (gated) {
        const Matrix<S> dup = dproduct.cwiseProduct(hidden.active);
        drows(run, expert.up).noalias() += dup * hidden.x.transpose();
        dhidden.noalias() += rows(run, expert.up).transpose() * dup;
      }
      for (std::size_t i = 0; i < tokens.size(); ++i) dx.col(tokens[i]) += dhidden.col(Index(i));
    }
  }

 private:
  struct Hidden {
    Matrix<S> x, gate, up, active, product;
  };
  static std::vector<Index> tokens_of(const Forward<S>& run, Index e) {
    std::vector<Index> tokens;
    for (Index t = 0; t < run.in().cols(); ++t)
      if (run.in(1)(e, t) != S(0)) tokens.push_back(t);
    return tokens;
  }
  static auto rows(const Forward<S>& run, const ExpertRows& part) {
    return run.weight(part.weight).middleRows(part.first, part.rows);
  }
  static auto drows(const Backward<S>& run, const ExpertRows& part) {
    return run.dweight(part.weight).middleRows(part.first, part.rows);
  }
  void compute(const Forward<S>& run, const Expert& expert, const std::vector<Index>& tokens,
               Hidden& hidden) const {
    hidden.x = run.in()(Eigen::all, tokens);
    hidden.up = rows(run, expert.up) * hidden.x;
    if (gated) hidden.gate = rows(run, expert.gate) * hidden.x;
    const Matrix<S>& before = gated ? hidden.gate : hidden.up;
    hidden.active.resize(before.rows(), before.cols());
    F::value(before, hidden.active);
    hidden.product = gated ? hidden.active.cwiseProduct(hidden.up).eval() : hidden.active;
  }
};

/// Names of the three maps of an expert, after the expert's number: experts.3.gate_proj.weight.
struct ExpertNames {
  std::string experts = "experts", gate = "gate_proj", up = "up_proj", down = "down_proj";
};

/// Experts with weights of their own. An empty name of the gate: without one.
template <class F = fw::Silu, class S>
Value<S> experts(const Value<S>& x, const Value<S>& routing, Index hidden,
                 const ExpertNames& names = {}) {
  using Op = RunExperts<S, F>;
  Builder<S>& builder = *x.builder;
  const bool gated = !names.gate.empty();
  std::vector<typename Op::Expert> parts;
  std::vector<std::size_t> weights;
  const auto add = [&](Index e, const std::string& name, Index rows, Index cols) {
    weights.push_back(
        builder.weight(names.experts + '.' + std::to_string(e) + '.' + name + ".weight",
                       {rows, cols}, uniform_draw(1 / std::sqrt(double(cols)))));
    return ExpertRows{weights.size() - 1, 0, rows};
  };
  for (Index e = 0; e < routing.rows(); ++e) {
    typename Op::Expert expert{};
    if (gated) expert.gate = add(e, names.gate, hidden, x.rows());
    expert.up = add(e, names.up, hidden, x.rows());
    expert.down = add(e, names.down, x.rows(), hidden);
    parts.push_back(expert);
  }
  return builder.add(Op(std::move(parts), gated), x.rows(), {x, routing}, std::move(weights));
}

/// Experts whose weights are two tensors of rank 3: [experts, gate and up rows, d] and [experts, d,
/// hidden].
template <class F = fw::Silu, class S>
Value<S> stacked_experts(const Value<S>& x, const Value<S>& routing, Index hidden,
                         const std::string& first, const std::string& second) {
  using Op = RunExperts<S, F>;
  Builder<S>& builder = *x.builder;
  const Index n = routing.rows(), d = x.rows();
  std::vector<typename Op::Expert> parts;
  for (Index e = 0; e < n; ++e)
    parts.push_back(
        {{0, 2 * e * hidden, hidden}, {0, (2 * e + 1) * hidden, hidden}, {1, e * d, d}});
  const std::size_t in =
      builder.weight(first + ".weight", {n, 2 * hidden, d}, uniform_draw(1 / std::sqrt(double(d))));
  const std::size_t out = builder.weight(second + ".weight", {n, d, hidden},
                                         uniform_draw(1 / std::sqrt(double(hidden))));
  return builder.add(Op(std::move(parts), true), d, {x, routing}, {in, out});
}

}  // namespace fw::networks
