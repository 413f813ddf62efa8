#pragma once

#include <algorithm>
#include <fastweights/networks/operations/elementwise.hpp>
#include <fastweights/networks/operations/weights.hpp>
#include <limits>

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
  x.rows_of_part(groups);
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
  static constexpr bool takes_constants = true;  // the bias
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
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<Scratch>();
  }

 private:
  using Vector = Eigen::Matrix<S, Dynamic, 1>;
  // Reused, so that a step does not allocate.
  struct Scratch : OperationTrace {
    Vector scores, group_scores;
    std::vector<Index> groups, experts, pair;
  };

  const std::vector<Index>& chosen(const Forward<S>& run, Index t) const {
    Scratch& scratch = run.template own_trace<Scratch>();
    Vector& by = scratch.scores;
    by = run.in().col(t);
    if (run.node.in.size() > 1) by += run.in(1).col(0);
    if (choice.best_groups < choice.groups) leave_best_groups(by, scratch);
    best(by, choice.experts, scratch.experts);
    return scratch.experts;
  }

  // The indices of the k largest scores; of equal ones, the first.
  template <class Scores>
  static void best(const Scores& scores, Index k, std::vector<Index>& found) {
    found.clear();
    for (Index i = 0; i < scores.size(); ++i) {
      std::size_t at = found.size();
      while (at > 0 && scores[i] > scores[found[at - 1]]) --at;
      if (Index(at) == k) continue;
      if (Index(found.size()) == k) found.pop_back();
      found.insert(found.begin() + std::ptrdiff_t(at), i);
    }
  }

  // Scores of other groups become −∞.
  void leave_best_groups(Vector& scores, Scratch& scratch) const {
    const Index size = scores.size() / choice.groups;
    scratch.group_scores.resize(choice.groups);
    for (Index g = 0; g < choice.groups; ++g) {
      const auto group = scores.segment(g * size, size);
      best(group, std::min<Index>(2, size), scratch.pair);
      scratch.group_scores[g] = 0;
      for (const Index i : scratch.pair) scratch.group_scores[g] += group[i];
    }
    best(scratch.group_scores, choice.best_groups, scratch.groups);
    for (Index g = 0; g < choice.groups; ++g)
      if (std::find(scratch.groups.begin(), scratch.groups.end(), g) == scratch.groups.end())
        scores.segment(g * size, size).setConstant(-std::numeric_limits<S>::infinity());
  }
};
template <class S>
Value<S> choose_experts(const Value<S>& scores, const Choice& choice,
                        const std::vector<Value<S>>& bias = {}) {
  if (choice.experts < 1 || choice.experts > scores.rows() || choice.groups < 1 ||
      scores.rows() % choice.groups != 0 || choice.best_groups < 1 ||
      (choice.groups > 1 &&
       choice.experts > choice.best_groups * (scores.rows() / choice.groups)))
    fw::detail::throw_invalid(
        {scores.builder->path(), ": cannot choose ", std::to_string(choice.experts), " of ",
         std::to_string(scores.rows()), " experts in ", std::to_string(choice.groups), " groups"});
  for (const Value<S>& each : bias)
    if (each.rows() != scores.rows())
      fw::detail::throw_mismatch(scores.builder->path(), "the bias", each.rows(), "rows",
                                 scores.rows(), "the scores");
  for (const Value<S>& each : bias)
    if (!scores.builder->is_constant(each))
      fw::detail::throw_invalid({scores.builder->path(), ": the bias must be constant"});
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

  bool takes_compact_weights() const override { return true; }
  void forward(const Forward<S>& run) const override {
    auto y = run.out();
    y.setZero();
    Hidden& hidden = run.template own_trace<Hidden>();
    for (std::size_t e = 0; e < experts.size(); ++e)
      if (compute(run, e, hidden))
        for (std::size_t i = 0; i < hidden.tokens.size(); ++i)
          y.col(hidden.tokens[i]) +=
              run.in(1)(Index(e), hidden.tokens[i]) * hidden.out.col(Index(i));
  }

  void backward(const Backward<S>& run) const override {
    auto dx = run.din(0), dr = run.din(1);
    Hidden& hidden = run.template own_trace<Hidden>();
    for (std::size_t e = 0; e < experts.size(); ++e) {
      if (!compute(run, e, hidden)) continue;
      const std::vector<Index>& tokens = hidden.tokens;
      Matrix<S> dout = run.dout()(Eigen::all, tokens);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        dr(Index(e), tokens[i]) += dout.col(Index(i)).dot(hidden.out.col(Index(i)));
        dout.col(Index(i)) *= run.in(1)(Index(e), tokens[i]);
      }
      const Matrix<S> dhidden = backward(run, experts[e], dout, hidden);
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
    if (const auto* compact = run.compact_weight(part.weight))
      compact->multiply_rows(part.first, x, y);
    else
      fw::detail::set_product(y, rows(run, part), x, fw::detail::all_at_once);
  }

  // False if no token chose the expert.
  bool compute(const Forward<S>& run, std::size_t e, Hidden& hidden) const {
    const auto x = run.in(), routing = run.in(1);
    const Expert& expert = experts[e];
    hidden.tokens.clear();
    for (Index t = 0; t < x.cols(); ++t)
      if (routing(Index(e), t) != S(0)) hidden.tokens.push_back(t);
    if (hidden.tokens.empty()) return false;
    hidden.x.resize(x.rows(), Index(hidden.tokens.size()));
    for (std::size_t i = 0; i < hidden.tokens.size(); ++i)
      hidden.x.col(Index(i)) = x.col(hidden.tokens[i]);
    multiply(run, expert.up, hidden.x, hidden.up);
    if (gated) multiply(run, expert.gate, hidden.x, hidden.gate);
    const Matrix<S>& before = gated ? hidden.gate : hidden.up;
    hidden.active.resize(before.rows(), before.cols());
    F::value(before, hidden.active);
    hidden.product = hidden.active;
    if (gated) hidden.product.array() *= hidden.up.array();
    multiply(run, expert.down, hidden.product, hidden.out);
    return true;
  }

  // Of one expert: adds to the gradients of its weights; the gradient of its tokens.
  Matrix<S> backward(const Backward<S>& run, const Expert& expert, const Matrix<S>& dout,
                     const Hidden& hidden) const {
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
    return dhidden;
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

/// Experts whose weights are two tensors of rank 3, under these names: [experts, gate and up rows, d]
/// and [experts, d, hidden].
template <class F = fw::Silu, class S>
Value<S> stacked_experts(const Value<S>& x, const Value<S>& routing, Index hidden,
                         const std::string& first, const std::string& second) {
  using Op = RunExperts<S, F>;
  Builder<S>& builder = *x.builder;
  const Index n = routing.rows(), d = x.rows();
  if (hidden < 1 || hidden > Index(1) << 31)  // no overflow in the products below
    fw::detail::throw_invalid({builder.path(first), ": has ", std::to_string(hidden), " rows"});
  std::vector<typename Op::Expert> parts;
  for (Index e = 0; e < n; ++e)
    parts.push_back(
        {{0, 2 * e * hidden, hidden}, {0, (2 * e + 1) * hidden, hidden}, {1, e * d, d}});
  const std::size_t in =
      builder.weight(first, {n, 2 * hidden, d}, uniform_draw(1 / std::sqrt(double(d))));
  const std::size_t out = builder.weight(second, {n, d, hidden},
                                         uniform_draw(1 / std::sqrt(double(hidden))));
  return builder.add(Op(std::move(parts), true), d, {x, routing}, {in, out});
}

}  // namespace fw::networks
