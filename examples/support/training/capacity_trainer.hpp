#pragma once

#include <functional>
#include <limits>

#include "models/capacity_rules.hpp"
#include "tasks/capacity_task.hpp"

/// The slow weights of the capacity tasks: k = W_K [onehot(v); e(k)] + b, q = W_Q e(q) + b and
/// β = σ(w [onehot(v); e(k)] + b), of learned embeddings of the keys. The width of an embedding and
/// how weights start are the authors'.
template <class S> struct CapacityNet {
  using Matrix = Eigen::MatrixX<S>;
  Matrix embedding;                    // e×S
  Matrix key, key_of_value, query;     // d_key×e, d_key×S, d_key×e
  Matrix strength, strength_of_value;  // 1×e, 1×S
  Eigen::VectorX<S> key_bias, query_bias, strength_bias;
  static constexpr auto names =
      fw::names("embedding", "key", "key_of_value", "query", "strength", "strength_of_value",
                "key_bias", "query_bias", "strength_bias");

  /// `fan`: W_K and W_Q start by what goes into them and comes out (Glorot, Bengio 2010), as the
  /// authors' softmax model does, otherwise by d_key alone.
  CapacityNet(fw::Index symbols, fw::Index d_key, std::uint64_t seed, bool fan = false) {
    const fw::Index width = 22 * symbols / 10;
    embedding.resize(width, symbols);
    key.resize(d_key, width);
    key_of_value.resize(d_key, symbols);
    query.resize(d_key, width);
    strength.resize(1, width);
    strength_of_value.resize(1, symbols);
    key_bias.resize(d_key);
    query_bias.resize(d_key);
    strength_bias.resize(1);
    fw::Random random(seed);
    random.fill(embedding);
    const auto root = [](fw::Index n) { return 1 / std::sqrt(static_cast<double>(n)); };
    const double of_keys = fan ? std::sqrt(6.0) * root(width + symbols + d_key) : root(d_key);
    fw::fill_uniform(random, of_keys, key, key_of_value);
    fw::fill_uniform(random, fan ? std::sqrt(6.0) * root(width + d_key) : root(d_key), query);
    fw::fill_uniform(random, root(width), query_bias);
    fw::fill_uniform(random, root(width + symbols), key_bias, strength, strength_of_value,
                     strength_bias);
  }
};

struct CapacityOptions {
  int symbols = 20;
  bool repeats = false;  // setting 2
  bool fan = false;      // how the slow weights start
  long d_key = 64, batch = 32, steps = 100000, every = 100, patience = 10, test = 20;
  double rate = 1e-3, enough = 1e-3;
  std::uint64_t seed = 1;
  std::function<void(long, double)> evaluated = [](long, double) {};  // is told step and loss
};

struct CapacityResult {
  double loss = std::numeric_limits<double>::infinity();  // the best of all evaluations
  long best = 0, last = 0;                                // the steps of it and of the last
  bool diverged = false;
};

/// Trains the slow weights around a rule on a task, until the loss is low or no longer falls.
/// Batches run one sequence after the other; trainings may run at the same time.
template <class Rule> class CapacityTrainer {
  using S = typename Rule::Scalar;

 public:
  using Net = CapacityNet<S>;

  CapacityTrainer(const CapacityOptions& options, Rule rule)
      : o_(options),
        task_(options.symbols, options.repeats),
        rule_(std::move(rule)),
        net_(options.symbols, options.d_key, options.seed, options.fan),
        grad_(net_),
        random_(options.seed * 7919 + static_cast<std::uint64_t>(options.symbols)) {
    for (Eigen::MatrixX<S>* one : {&keys_, &dkeys_}) one->resize(o_.d_key, o_.symbols);
    for (Eigen::RowVectorX<S>* one : {&logits_, &dlogits_}) one->resize(o_.symbols);
    recall_.answers.resize(o_.symbols, 1);
  }

  Net& net() { return net_; }
  const Net& gradient() const { return grad_; }

  CapacityResult train() {
    CapacityResult result;
    fw::AdamW<Net> adam(net_, {.weight_decay = 0});
    long strikes = 0;
    for (long step = 1; step <= o_.steps; ++step) {
      redraw();
      std::vector<RecallSequence> batch(static_cast<std::size_t>(o_.batch));
      for (auto& each : batch) each = task_.training(random_);
      loss(batch, /*with_gradient=*/true);
      result.last = step;
      result.diverged = !std::isfinite(fw::gradient_norm(grad_));
      if (result.diverged) return result;
      adam.step(net_, grad_, o_.rate);
      if (step % o_.every != 0) continue;
      const double now = evaluate();
      o_.evaluated(step, now);
      strikes = now < result.loss ? 0 : strikes + 1;
      if (now < result.loss) result.loss = now, result.best = step;
      if (now <= o_.enough || strikes > o_.patience) break;
    }
    return result;
  }

  /// The mean loss over all queries of some sequences.
  double evaluate() {
    std::vector<RecallSequence> sequences(static_cast<std::size_t>(o_.test));
    for (auto& each : sequences) each = task_.evaluation(random_);
    return loss(sequences, /*with_gradient=*/false);
  }

  /// The mean of ½‖v* − v̂‖² over all queries; leaves its gradient in gradient().
  double loss(const std::vector<RecallSequence>& sequences, bool with_gradient) {
    double sum = 0;
    std::size_t queries = 0;
    for (const auto& s : sequences) queries += s.queries.size();
    project();
    if (with_gradient) clear_gradient();
    for (const auto& s : sequences) {
      ask(s);
      rule_.forward(recall_);
      recall_.danswers = recall_.answers;
      for (std::size_t i = 0; i < s.answers.size(); ++i)
        recall_.danswers(s.answers[i], static_cast<fw::Index>(i)) -= 1;
      sum += 0.5 * static_cast<double>(recall_.danswers.squaredNorm());
      if (!with_gradient) continue;
      recall_.danswers /= static_cast<S>(queries);
      recall_.clear_gradient();
      rule_.backward(recall_);
      ask_backward(s);
    }
    if (with_gradient) project_backward();
    return sum / static_cast<double>(queries);
  }

 private:
  // Random features are drawn anew for every batch.
  void redraw() { redraw(rule_.map()); }
  template <class Map> void redraw(Map& map) {
    if constexpr (requires { map.redraw(std::uint64_t{1}); })
      map.redraw(random_.below(1ULL << 62));
    else if constexpr (requires { map.first; })
      redraw(map.first);
  }

  // What embeddings add to keys and strengths, once for all sequences of a batch.
  void project() {
    keys_.noalias() = net_.key * net_.embedding;
    keys_.colwise() += net_.key_bias;
    logits_.noalias() = net_.strength * net_.embedding;
    logits_.array() += net_.strength_bias[0];
  }
  void clear_gradient() {
    fw::set_zero_parameters(grad_);
    dkeys_.setZero();
    dlogits_.setZero();
  }
  void project_backward() {
    grad_.key.noalias() += dkeys_ * net_.embedding.transpose();
    grad_.strength.noalias() += dlogits_ * net_.embedding.transpose();
    grad_.embedding.noalias() += net_.key.transpose() * dkeys_;
    grad_.embedding.noalias() += net_.strength.transpose() * dlogits_;
    grad_.key_bias += dkeys_.rowwise().sum();
    grad_.strength_bias[0] += dlogits_.sum();
  }

  void ask(const RecallSequence& s) {
    const auto length = static_cast<fw::Index>(s.keys.size());
    const auto queries = static_cast<fw::Index>(s.queries.size());
    recall_.values = s.values;
    recall_.keys.resize(o_.d_key, length);
    recall_.beta.resize(length);
    for (fw::Index t = 0; t < length; ++t) {
      const int key = s.keys[static_cast<std::size_t>(t)];
      const int value = s.values[static_cast<std::size_t>(t)];
      recall_.keys.col(t) = keys_.col(key) + net_.key_of_value.col(value);
      recall_.beta[t] = logits_[key] + net_.strength_of_value(0, value);
    }
    recall_.beta = (1 + (-recall_.beta.array()).exp()).inverse();
    asked_.resize(net_.embedding.rows(), queries);
    for (fw::Index i = 0; i < queries; ++i)
      asked_.col(i) = net_.embedding.col(s.queries[static_cast<std::size_t>(i)]);
    recall_.queries.noalias() = net_.query * asked_;
    recall_.queries.colwise() += net_.query_bias;
  }
  void ask_backward(const RecallSequence& s) {
    for (std::size_t i = 0; i < s.keys.size(); ++i) {
      const auto t = static_cast<fw::Index>(i);
      const S dlogit = recall_.dbeta[t] * recall_.beta[t] * (1 - recall_.beta[t]);
      dkeys_.col(s.keys[i]) += recall_.dkeys.col(t);
      grad_.key_of_value.col(s.values[i]) += recall_.dkeys.col(t);
      dlogits_[s.keys[i]] += dlogit;
      grad_.strength_of_value(0, s.values[i]) += dlogit;
    }
    grad_.query.noalias() += recall_.dqueries * asked_.transpose();
    grad_.query_bias += recall_.dqueries.rowwise().sum();
    asked_.noalias() = net_.query.transpose() * recall_.dqueries;
    for (std::size_t i = 0; i < s.queries.size(); ++i)
      grad_.embedding.col(s.queries[i]) += asked_.col(static_cast<fw::Index>(i));
  }

  CapacityOptions o_;
  RecallTask task_;
  Rule rule_;
  Net net_, grad_;
  fw::Random random_;
  Recall<S> recall_;
  Eigen::MatrixX<S> keys_, dkeys_, asked_;
  Eigen::RowVectorX<S> logits_, dlogits_;
};
