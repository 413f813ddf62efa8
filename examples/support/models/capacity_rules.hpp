#pragma once

#include <fastweights/fastweights.hpp>
#include <utility>
#include <vector>

/// \file
/// The memories of the capacity tasks, behind feature maps: written with the keys and values of one
/// sequence and asked after its end. Values are numbers, of vectors that are one-hot.

/// What a memory is given and answers, one pair or query a column, and the gradients.
template <class S> struct Recall {
  using Matrix = Eigen::MatrixX<S>;
  using Row = Eigen::RowVectorX<S>;
  Matrix keys, queries, answers;  // d_key×L, d_key×Q, S×Q
  std::vector<int> values;        // L
  Row beta;                       // write strengths
  Matrix dkeys, dqueries, danswers;
  Row dbeta;

  void clear_gradient() {
    dkeys.setZero(keys.rows(), keys.cols());
    dqueries.setZero(queries.rows(), queries.cols());
    dbeta.setZero(beta.size());
  }
};

/// Keys and queries through a feature map and back.
template <class S, class Map> class MappedKeys {
 public:
  explicit MappedKeys(Map m) : map(std::move(m)) {}

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

  Map map;
  Eigen::MatrixX<S> keys, queries, dkeys, dqueries;
};

/// The sum rule, y = Σ_t v_t φ(k_t)·φ(q) / (Σ_t φ(k_t)·φ(q) + ε), by the weights of the pairs: with
/// a few queries at the end and values that are numbers this costs a fraction of S×features
/// matrices. It is LinearAttention with AttentionNormaliser, up to rounding.
template <class Map, class S = float> class SumRule {
 public:
  using Scalar = S;

  SumRule(fw::Index, fw::Index, Map map) : mapped_(std::move(map)) {}

  Map& map() { return mapped_.map; }

  void forward(Recall<S>& r) {
    mapped_.forward(r);
    weights_.noalias() = mapped_.keys.transpose() * mapped_.queries;
    inverse_ = (weights_.colwise().sum().array() + S(1e-6)).inverse();
    weights_ *= inverse_.matrix().asDiagonal();
    r.answers.setZero(r.answers.rows(), r.queries.cols());
    for (std::size_t t = 0; t < r.values.size(); ++t)
      r.answers.row(r.values[t]) += weights_.row(static_cast<fw::Index>(t));
  }
  void backward(Recall<S>& r) {
    const Eigen::RowVectorX<S> along = r.danswers.cwiseProduct(r.answers).colwise().sum();
    for (std::size_t t = 0; t < r.values.size(); ++t)
      weights_.row(static_cast<fw::Index>(t)) = r.danswers.row(r.values[t]) - along;
    weights_ *= inverse_.matrix().asDiagonal();
    mapped_.dkeys.noalias() = mapped_.queries * weights_.transpose();
    mapped_.dqueries.noalias() = mapped_.keys * weights_;
    mapped_.backward(r);
  }

 private:
  MappedKeys<S, Map> mapped_;
  Eigen::MatrixX<S> weights_;  // L×Q, then their gradient
  Eigen::Array<S, 1, Eigen::Dynamic> inverse_;
};

/// Softmax attention, by the weights of the pairs as well.
template <class S = float> class SoftmaxRule {
 public:
  using Scalar = S;

  SoftmaxRule(fw::Index, fw::Index, fw::IdentityMap map) : map_(map) {}

  fw::IdentityMap& map() { return map_; }

  void forward(Recall<S>& r) {
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
  void backward(Recall<S>& r) {
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

  fw::IdentityMap map_;
  Eigen::MatrixX<S> weights_;
};

/// Any memory of the library that takes a key, a value and β.
template <class M, class Map> class MemoryRule {
 public:
  using S = typename M::Scalar;
  using Scalar = S;

  MemoryRule(fw::Index symbols, fw::Index d_key, Map map)
      : mapped_(std::move(map)), memory_(symbols, mapped_.map.features(d_key)) {}

  Map& map() { return mapped_.map; }

  void forward(Recall<S>& r) {
    mapped_.forward(r);
    take_values(r);
    silent_.setZero(mapped_.keys.rows(), mapped_.keys.cols());
    room_.resize(r.answers.rows(), silent_.cols());
    state_ = fw::initial_state(memory_);
    fw::scan(memory_, state_, {mapped_.keys, values_, strengths_}, {silent_}, {room_}, kept_);
    r.answers.resize(r.answers.rows(), r.queries.cols());
    for (fw::Index q = 0; q < r.queries.cols(); ++q)
      fw::read(memory_, std::as_const(state_), {mapped_.queries.col(q)}, {r.answers.col(q)});
  }
  void backward(Recall<S>& r) {
    auto dstate = fw::zero_gradient(memory_);
    for (auto* gradient : {&mapped_.dkeys, &dsilent_})
      gradient->setZero(silent_.rows(), silent_.cols());
    mapped_.dqueries.setZero(silent_.rows(), r.queries.cols());
    dvalues_.setZero(values_.rows(), values_.cols());
    dstrengths_.setZero(strengths_.size());
    for (fw::Index q = 0; q < r.queries.cols(); ++q)
      memory_.read_vjp(state_, {mapped_.queries.col(q)}, {r.danswers.col(q)}, dstate,
                       {mapped_.dqueries.col(q)});
    room_.setZero();
    fw::backward(memory_, kept_, {mapped_.keys, values_, strengths_}, {silent_}, {room_}, dstate,
                 {mapped_.dkeys, dvalues_, dstrengths_}, {dsilent_});
    give_strengths(r);
    mapped_.backward(r);
  }

 private:
  // The gated rule W ← (1 − β) W + β v φ(k)ᵀ is a sum rule with decay 1 − β and value β v.
  static constexpr bool gated = requires(fw::WriteSequence<M> w) { w.decay; };

  void take_values(const Recall<S>& r) {
    values_.setZero(r.answers.rows(), r.keys.cols());
    for (std::size_t t = 0; t < r.values.size(); ++t) {
      const auto i = static_cast<fw::Index>(t);
      values_(r.values[t], i) = gated ? r.beta[i] : S(1);
    }
    strengths_ = r.beta;
    if (gated) strengths_.array() = 1 - r.beta.array();
  }
  void give_strengths(Recall<S>& r) const {
    r.dbeta += S(gated ? -1 : 1) * dstrengths_;
    for (std::size_t t = 0; gated && t < r.values.size(); ++t)
      r.dbeta[static_cast<fw::Index>(t)] += dvalues_(r.values[t], static_cast<fw::Index>(t));
  }

  MappedKeys<S, Map> mapped_;
  M memory_;
  fw::StateOf<M> state_;
  fw::Checkpoints<M> kept_;
  Eigen::MatrixX<S> values_, silent_, room_, dvalues_, dsilent_;
  Eigen::RowVectorX<S> strengths_, dstrengths_;
};
