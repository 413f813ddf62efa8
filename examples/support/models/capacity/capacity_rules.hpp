#pragma once

#include <cmath>
#include <fastweights/algorithms/backward.hpp>
#include <fastweights/algorithms/step.hpp>

#include "models/capacity/recall.hpp"

/// \file
/// The memories of the capacity tasks, behind feature maps.

/// Applies a feature map to keys and queries, and computes its gradients.
template <class S> class MappedKeys {
 public:
  explicit MappedKeys(AnyMap<S> m) : map(std::move(m)) {}

  void forward(const Recall<S>& r) {
    keys.resize(map.features(r.keys.rows()), r.keys.cols());
    queries.resize(keys.rows(), r.queries.cols());
    map.map(r.keys, keys);
    map.map(r.queries, queries);
  }
  void backward(Recall<S>& r) const {
    map.vjp(r.keys, keys, dkeys, r.dkeys);
    map.vjp(r.queries, queries, dqueries, r.dqueries);
  }

  AnyMap<S> map;
  Eigen::MatrixX<S> keys, queries, dkeys, dqueries;
};

/// The sum rule, y = Σ_t v_t φ(k_t)·φ(q) / (Σ_t φ(k_t)·φ(q) + ε), in parallel form. With few
/// queries and one-hot values this costs a fraction of S×features states. It equals LinearAttention
/// with AttentionNormaliser up to rounding.
template <class S> class SumRule final : public RecallRule<S> {
 public:
  explicit SumRule(AnyMap<S> map) : mapped_(std::move(map)) {}

  void redraw(fw::Random& random) override { mapped_.map.redraw(random); }

  void forward(Recall<S>& r) override {
    mapped_.forward(r);
    weights_.noalias() = mapped_.keys.transpose() * mapped_.queries;
    inverse_ = (weights_.colwise().sum().array() + S(1e-6)).inverse();
    weights_ *= inverse_.matrix().asDiagonal();
    r.answers.setZero(r.answers.rows(), r.queries.cols());
    for (std::size_t t = 0; t < r.values.size(); ++t)
      r.answers.row(r.values[t]) += weights_.row(static_cast<fw::Index>(t));
  }
  void backward(Recall<S>& r) override {
    const Eigen::RowVectorX<S> along = r.danswers.cwiseProduct(r.answers).colwise().sum();
    for (std::size_t t = 0; t < r.values.size(); ++t)
      weights_.row(static_cast<fw::Index>(t)) = r.danswers.row(r.values[t]) - along;
    weights_ *= inverse_.matrix().asDiagonal();
    mapped_.dkeys.noalias() = mapped_.queries * weights_.transpose();
    mapped_.dqueries.noalias() = mapped_.keys * weights_;
    mapped_.backward(r);
  }

 private:
  MappedKeys<S> mapped_;
  Eigen::MatrixX<S> weights_;  // L×Q, then their gradient
  Eigen::Array<S, 1, Eigen::Dynamic> inverse_;
};

/// Softmax attention, in parallel form as well.
template <class S> class SoftmaxRule final : public RecallRule<S> {
 public:
  void forward(Recall<S>& r) override {
    weights_.noalias() = scale(r) * (r.keys.transpose() * r.queries);
    for (fw::Index q = 0; q < weights_.cols(); ++q) {
      auto column = weights_.col(q).array();
      column = (column - column.maxCoeff()).exp();
      column /= column.sum();
    }
    r.answers.setZero(r.answers.rows(), r.queries.cols());
    for (std::size_t t = 0; t < r.values.size(); ++t)
      r.answers.row(r.values[t]) += weights_.row(static_cast<fw::Index>(t));
  }
  void backward(Recall<S>& r) override {
    const Eigen::RowVectorX<S> along = r.danswers.cwiseProduct(r.answers).colwise().sum();
    for (std::size_t t = 0; t < r.values.size(); ++t) {
      auto row = weights_.row(static_cast<fw::Index>(t));
      row = row.cwiseProduct(r.danswers.row(r.values[t]) - along).eval();
    }
    weights_ *= scale(r);
    r.dkeys.noalias() += r.queries * weights_.transpose();
    r.dqueries.noalias() += r.keys * weights_;
  }

 private:
  static S scale(const Recall<S>& r) { return 1 / std::sqrt(static_cast<S>(r.keys.rows())); }

  Eigen::MatrixX<S> weights_;
};

/// Any memory of the library with a key, a value and β as inputs.
template <class M> class MemoryRule final : public RecallRule<typename M::Scalar> {
 public:
  using S = typename M::Scalar;

  MemoryRule(fw::Index symbols, fw::Index d_key, AnyMap<S> map)
      : mapped_(std::move(map)),
        memory_({.key_size = mapped_.map.features(d_key), .value_size = symbols}) {}

  void redraw(fw::Random& random) override { mapped_.map.redraw(random); }

  void forward(Recall<S>& r) override {
    mapped_.forward(r);
    set_values(r);
    no_queries_.setZero(mapped_.keys.rows(), mapped_.keys.cols());
    no_answers_.resize(r.answers.rows(), no_queries_.cols());
    state_ = fw::initial_state(memory_);
    fw::scan(memory_, state_, {mapped_.keys, values_, strengths_}, {no_queries_}, {no_answers_},
             checkpoints_);
    r.answers.resize(r.answers.rows(), r.queries.cols());
    for (fw::Index q = 0; q < r.queries.cols(); ++q)
      fw::read(memory_, std::as_const(state_), {mapped_.queries.col(q)}, {r.answers.col(q)});
  }
  void backward(Recall<S>& r) override {
    auto dstate = fw::zero_gradient(memory_);
    for (auto* gradient : {&mapped_.dkeys, &dno_queries_})
      gradient->setZero(no_queries_.rows(), no_queries_.cols());
    mapped_.dqueries.setZero(no_queries_.rows(), r.queries.cols());
    dvalues_.setZero(values_.rows(), values_.cols());
    dstrengths_.setZero(strengths_.size());
    for (fw::Index q = 0; q < r.queries.cols(); ++q)
      memory_.read_vjp(state_, {mapped_.queries.col(q)}, {r.danswers.col(q)}, dstate,
                       {mapped_.dqueries.col(q)});
    no_answers_.setZero();
    fw::backward(memory_, checkpoints_, {mapped_.keys, values_, strengths_}, {no_queries_},
                 {no_answers_}, dstate, {mapped_.dkeys, dvalues_, dstrengths_}, {dno_queries_});
    add_strength_gradients(r);
    mapped_.backward(r);
  }

 private:
  // The gated rule W ← (1 − β) W + β v φ(k)ᵀ is a sum rule with decay 1 − β and value β v.
  static constexpr bool gated = requires(fw::WriteSequence<M> w) { w.decay; };

  void set_values(const Recall<S>& r) {
    values_.setZero(r.answers.rows(), r.keys.cols());
    for (std::size_t t = 0; t < r.values.size(); ++t) {
      const auto i = static_cast<fw::Index>(t);
      values_(r.values[t], i) = gated ? r.beta[i] : S(1);
    }
    strengths_ = r.beta;
    if (gated) strengths_.array() = 1 - r.beta.array();
  }
  void add_strength_gradients(Recall<S>& r) const {
    r.dbeta += S(gated ? -1 : 1) * dstrengths_;
    for (std::size_t t = 0; gated && t < r.values.size(); ++t)
      r.dbeta[static_cast<fw::Index>(t)] += dvalues_(r.values[t], static_cast<fw::Index>(t));
  }

  MappedKeys<S> mapped_;
  M memory_;
  fw::StateOf<M> state_;
  fw::Checkpoints<M> checkpoints_;
  Eigen::MatrixX<S> values_, no_queries_, no_answers_, dvalues_, dno_queries_;
  Eigen::RowVectorX<S> strengths_, dstrengths_;
};
