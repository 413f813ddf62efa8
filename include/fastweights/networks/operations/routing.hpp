#pragma once

#include <algorithm>
#include <fastweights/math/softmax.hpp>
#include <fastweights/networks/operations/elementwise.hpp>
#include <fastweights/networks/operations/equal_parts.hpp>
#include <limits>

/// \file
/// The experts of a token and their weights: a softmax of scores, the k largest, a sum of 1.
/// Shazeer et al. 2017, arXiv 1701.06538, eq. 3 to 5.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Each of `groups` equal parts through a softmax.
template <class S> struct Softmax final : Operation<S> {
  Index groups;  ///< equal parts of x

  explicit Softmax(Index g) : groups(g) {}
  void forward(const Forward<S>& run) const override {
    for_each_part(
        groups,
        [](const auto& x, auto y) {
          y = x;
          fw::detail::softmax_in_place(y);
        },
        run.in(), run.out());
  }
  void backward(const Backward<S>& run) const override {
    for_each_part(
        groups,
        [](const auto& y, const auto& dy, auto dx) { dx += fw::detail::softmax_vjp(y, dy); },
        run.out(), run.dout(), run.din());
  }
};
/// The softmax of each of `groups` equal parts.
template <class S> Value<S> softmax(const Value<S>& x, Index groups = 1) {
  x.rows_of_part(groups);
  return x.builder->add(Softmax<S>(groups), x.rows(), {x});
}

/// The way in which tokens choose experts.
struct Choice {
  Index experts = 1;      ///< k that a token chooses
  Index groups = 1;       ///< equal groups of experts …
  Index best_groups = 1;  ///< … of which those with the largest sum of two best scores take part
};

/// Keeps the k largest of a token's scores and sets the others to 0. The choice is made by score +
/// bias, if there is a second input; a bias has no gradient. DeepSeek-AI 2024, arXiv 2412.19437,
/// eq. 14 to 16.
template <class S> struct ChooseExperts final : Operation<S> {
  static constexpr bool takes_constants = true;  ///< the bias
  Choice choice;                                 ///< how many experts, and how

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
      const auto score = Eigen::numext::real(scores[i]);
      while (at > 0 && score > Eigen::numext::real(scores[found[at - 1]])) --at;
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
        scores.segment(g * size, size)
            .setConstant(S(-std::numeric_limits<typename Eigen::NumTraits<S>::Real>::infinity()));
  }
};
/// The k largest of a token's scores, the others 0. `bias` is empty or one value.
template <class S>
Value<S> top_k_experts(const Value<S>& scores, const Choice& choice,
                       const std::vector<Value<S>>& bias = {}) {
  if (choice.experts < 1 || choice.experts > scores.rows() || choice.groups < 1 ||
      scores.rows() % choice.groups != 0 || choice.best_groups < 1 ||
      (choice.groups > 1 && choice.experts > choice.best_groups * (scores.rows() / choice.groups)))
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
template <class S> struct NormaliseRouting final : Operation<S> {
  S epsilon;

  explicit NormaliseRouting(double e) : epsilon(S(e)) {}
  void forward(const Forward<S>& run) const override {
    for (Index t = 0; t < run.in().cols(); ++t)
      run.out().col(t) = run.in().col(t) / (run.in().col(t).sum() + epsilon);
  }
  void backward(const Backward<S>& run) const override {
    for (Index t = 0; t < run.in().cols(); ++t) {
      const S along = run.dout().col(t).cwiseProduct(run.out().col(t)).sum();
      run.din().col(t).array() +=
          (run.dout().col(t).array() - along) / (run.in().col(t).sum() + epsilon);
    }
  }
};
/// x / (Σ x + ε).
template <class S> Value<S> normalise_routing(const Value<S>& x, double epsilon = 0) {
  return x.builder->add(NormaliseRouting<S>(epsilon), x.rows(), {x});
}

}  // namespace fw::networks
