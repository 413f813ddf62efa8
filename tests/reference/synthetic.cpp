#include <fastweights/algorithms/backward.hpp>
#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/tanh.hpp>
#include <fastweights/layers/projections/linear.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/fast_weight_memory.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "case.hpp"

namespace reference {

namespace {

using Normaliser = fw::AttentionNormaliser<double>;
using Linear = fw::Linear<double>;

// The source applies SumNormalise to queries, but not to keys.
struct SumNormaliseWithEpsilon : fw::detail::KeepsRows {
  static constexpr std::string_view name = "SumNormaliseWithEpsilon";
  static constexpr double epsilon = 1e-6;

  template <class X, class Y> void map(const X& x, Y& y) const {
    for (Index t = 0; t < x.cols(); ++t) y.col(t) = x.col(t) / (x.col(t).sum() + epsilon);
  }
  template <class X, class Y, class Dy, class Dx>
  void vjp(const X& x, const Y& y, const Dy& dy, Dx& dx) const {
    for (Index t = 0; t < x.cols(); ++t)
      dx.col(t).array() +=
          (dy.col(t).array() - dy.col(t).dot(y.col(t))) / (x.col(t).sum() + epsilon);
  }
};

// The slow net of the synthetic tasks: k = W_k x + b, q = W_q e(query) + b, β = σ(W_b x + b), with
// x = [onehot(value); e(key)]. Rules without β may have no W_b.
struct Slow {
  Matrix embedding;  // one column per symbol
  Linear key, query, strength;

  explicit Slow(Case& file)
      : embedding(file["p_embeddingK__weight"].matrix().transpose()),
        key(load(file, "p_W_k")),
        query(load(file, "p_W_q")),
        strength(file.has("p_W_b__weight") ? load(file, "p_W_b") : Linear(key.inputs(), 1)) {}

  void set_zero() {
    embedding.setZero();
    for (Linear* map : {&key, &query, &strength}) fw::set_zero_parameters(*map);
  }

 private:
  static Linear load(Case& file, const std::string& name) {
    Array weight = file[name + "__weight"], bias = file[name + "__bias"];
    Linear map(weight.axis(1), weight.axis(0));
    map.weight = weight.matrix();
    map.bias = bias.flat();
    return map;
  }
};

// The symbols of one sequence, and its query.
struct Symbols {
  std::vector<Index> keys, values;
  Index query = 0, answer = 0;
};
Symbols symbols(Case& file, Index b, Index batch, Index values) {
  const auto x = file.integers("x_tokens");
  const Index steps = Index(x.size()) / (2 * batch);
  Symbols s;
  for (Index t = 0; t < steps; ++t) {
    s.keys.push_back(Index(x[std::size_t(2 * b * steps + t)]));
    s.values.push_back(Index(x[std::size_t((2 * b + 1) * steps + t)]) - values);
  }
  s.query = Index(file.integers("q_tokens")[std::size_t(b)]);
  s.answer = Index(file.integers("y_tokens")[std::size_t(b)]) - values;
  return s;
}

// A memory's inputs for a sequence, or their gradients, with keys and queries mapped. Only the last
// token has a query; all other queries are 0.
struct Tokens {
  Matrix key, value, beta, query;

  Tokens zeros() const { return {0 * key, 0 * value, 0 * beta, 0 * query}; }
  // The tokens from `first` on.
  template <class R> R writes(Index first) {
    const Index n = key.cols() - first;
    if constexpr (fw::member_count<R> == 3)
      return R{key.rightCols(n), value.rightCols(n), beta.rightCols(n)};
    else
      return R{key.rightCols(n), value.rightCols(n)};
  }
  template <class R> R reads(Index first) { return R{query.rightCols(key.cols() - first)}; }
};

// Writes the first tokens by hand, and computes their gradients. Returns the number of these
// tokens.
template <class M> Index start(const M&, const Tokens&, fw::StateOf<M>&) { return 0; }
template <class M> void start_vjp(const M&, const Tokens&, const fw::StateOf<M>&, Tokens&) {}

// The source does not project the first token's matrix to the unit ball.
using FastWeightMemory = fw::FastWeightMemory<double>;
Index start(const FastWeightMemory&, const Tokens& in, fw::StateOf<FastWeightMemory>& s) {
  s.W = in.beta(0) * in.value.col(0) * in.key.col(0).transpose();
  return 1;
}
void start_vjp(const FastWeightMemory&, const Tokens& in, const fw::StateOf<FastWeightMemory>& ds,
               Tokens& din) {
  din.beta(0) += in.value.col(0).dot(ds.W * in.key.col(0));
  din.key.col(0) += in.beta(0) * ds.W.transpose() * in.value.col(0);
}

// The memory's output, and the gradients of Σ dy·y.
template <class M>
Eigen::VectorXd read_memory(const M& m, Tokens& in, const Eigen::VectorXd& dy, Tokens& din) {
  auto state = fw::initial_state(m);
  auto ds = fw::zero_gradient(m);
  const Index first = start(m, in, state), steps = in.key.cols() - first;
  Matrix out(in.value.rows(), steps), dout = Matrix::Zero(in.value.rows(), steps);
  dout.rightCols(1) = dy;
  fw::Checkpoints<M> checkpoints;
  fw::scan(m, state, in.writes<fw::WriteSequence<M>>(first), in.reads<fw::ReadSequence<M>>(first),
           {out}, checkpoints);
  fw::backward(m, checkpoints, in.writes<fw::WriteSequence<M>>(first),
               in.reads<fw::ReadSequence<M>>(first), {dout}, ds,
               din.writes<fw::WriteGradSequence<M>>(first),
               din.reads<fw::ReadGradSequence<M>>(first));
  start_vjp(m, in, ds, din);
  return out.rightCols(1);
}

template <class Map> Matrix mapped(const Map& map, const Matrix& x) {
  Matrix y(map.features(x.rows()), x.cols());
  fw::apply(map, x, y);
  return y;
}

// One sequence: y, with the gradients of the slow net added to dslow.
template <class M, class KeyMap, class QueryMap>
Eigen::VectorXd run_sequence(const M& m, const KeyMap& key_map, const QueryMap& query_map,
                             const Symbols& s, Index values, const Slow& slow,
                             const Eigen::VectorXd& dy, Slow& dslow) {
  const Index steps = Index(s.keys.size());
  Matrix x = Matrix::Zero(slow.key.inputs(), steps), query_embedding = slow.embedding.col(s.query);
  for (Index t = 0; t < steps; ++t) {
    x(s.values[std::size_t(t)], t) = 1;
    x.col(t).tail(slow.embedding.rows()) = slow.embedding.col(s.keys[std::size_t(t)]);
  }
  const Matrix k = (slow.key.weight * x).colwise() + slow.key.bias;
  const Matrix q = (slow.query.weight * query_embedding).colwise() + slow.query.bias;
  const Matrix logits = (slow.strength.weight * x).colwise() + slow.strength.bias;
  Tokens in{mapped(key_map, k), x.topRows(values), (1 / (1 + (-logits).array().exp())).matrix(),
            Matrix::Zero(query_map.features(q.rows()), steps)};
  const Matrix query = mapped(query_map, q);
  in.query.rightCols(1) = query;

  Tokens din = in.zeros();
  const Eigen::VectorXd y = read_memory(m, in, dy, din);

  Matrix dk = 0 * k, dq = 0 * q, dx = 0 * x, dquery_embedding = 0 * query_embedding;
  const Matrix dquery = din.query.rightCols(1);
  fw::apply_vjp(key_map, k, in.key, din.key, dk);
  fw::apply_vjp(query_map, q, query, dquery, dq);
  const Matrix dlogits = (din.beta.array() * in.beta.array() * (1 - in.beta.array())).matrix();
  fw::Output<double> to_x(dx), to_query_embedding(dquery_embedding);
  slow.key.add_backward(x, dk, to_x, dslow.key);
  slow.strength.add_backward(x, dlogits, to_x, dslow.strength);
  slow.query.add_backward(query_embedding, dq, to_query_embedding, dslow.query);
  for (Index t = 0; t < steps; ++t)
    dslow.embedding.col(s.keys[std::size_t(t)]) += dx.col(t).tail(slow.embedding.rows());
  dslow.embedding.col(s.query) += dquery_embedding;
  return y;
}

// A bias shared by all keys does not change their softmax: its gradient is 0 up to rounding.
void compare_gradients(Case& file, const Slow& dslow, bool softmax) {
  Array dembedding = file.like("p_embeddingK__weight");
  dembedding.matrix() = dslow.embedding.transpose();
  file.gradient("grad_p_embeddingK__weight", dembedding);
  const std::map<std::string, const Linear*> maps{
      {"p_W_k", &dslow.key}, {"p_W_q", &dslow.query}, {"p_W_b", &dslow.strength}};
  for (const auto& [name, map] : maps) {
    if (!file.has(name + "__weight")) continue;
    Array dweight = file.like(name + "__weight"), dbias = file.like(name + "__bias");
    dweight.matrix() = map->weight;
    dbias.flat() = map->bias;
    file.gradient("grad_" + name + "__weight", dweight);
    const double weights = map->weight.cwiseAbs().maxCoeff();
    file.gradient("grad_" + name + "__bias", dbias,
                  softmax && name == "p_W_k" ? 1e-3 * weights : 0);
  }
}

template <class M, class KeyMap, class QueryMap>
void run(Case& file, const M& m, const KeyMap& key_map, const QueryMap& query_map) {
  Array y = file.like("y_hat"), up = file["up_y_hat"], loss = file.like("their_loss", 0);
  const Index batch = y.axis(0), values = y.axis(1);
  const Slow slow(file);
  Slow dslow = slow;
  dslow.set_zero();
  for (Index b = 0; b < batch; ++b) {
    const Symbols s = symbols(file, b, batch, values);
    Eigen::VectorXd answer =
        run_sequence(m, key_map, query_map, s, values, slow, up.matrix().row(b).transpose(), dslow);
    y.matrix().row(b) = answer;
    answer[s.answer] -= 1;
    loss.values[0] += 0.5 * answer.squaredNorm() / double(batch);
  }
  file.forward("y_hat", y);
  file.forward("their_loss", loss);
  compare_gradients(file, dslow, std::is_same_v<M, fw::KeyValueCache<double>>);
}

// d_v, and the size of a key before the feature map.
Index value_rows(Case& file) { return file.like("y_hat").axis(1); }
Index key_rows(Case& file) { return file.like("p_W_k__bias").axis(0); }

template <class Map> void sum_rule(Case& file, const Map& map) {
  using M = fw::LinearAttention<double, -1, -1, Normaliser>;
  run(file,
      M({.key_size = map.features(key_rows(file)), .value_size = value_rows(file)},
        Normaliser{1e-6}),
      map, map);
}
template <class Map> void sum(Case& file) { sum_rule(file, Map()); }
void sum_favor(Case& file) {
  sum_rule(file, fw::FavorPlus<double>(Matrix(file["Omega"].matrix())));
}
template <class Map> void delta(Case& file) {
  const fw::DeltaRule<double> m(
      {.key_size = Map().features(key_rows(file)), .value_size = value_rows(file)});
  run(file, m, fw::SumNormalised<Map>(), fw::Chain<Map, SumNormaliseWithEpsilon>());
}
template <class Map> void fast_weight_memory(Case& file) {
  run(file,
      FastWeightMemory(
          {.key_size = Map().features(key_rows(file)), .value_size = value_rows(file)}),
      Map(), Map());
}
void softmax(Case& file) {
  const Index batch = file.like("y_hat").axis(0);
  const Index steps = Index(file.integers("x_tokens").size()) / (2 * batch);
  const fw::KeyValueCache<double> m({.key_size = key_rows(file), .value_size = value_rows(file)},
                                    {.capacity = steps});
  run(file, m, fw::IdentityMap(), fw::IdentityMap());
}

}  // namespace

std::map<std::string, Test> synthetic_tests() {
  return {{"synth_sum_linear", sum<fw::EluPlusOne>},
          {"synth_sum_dpfp1", sum<fw::Dpfp<1>>},
          {"synth_sum_favor24", sum_favor},
          {"synth_ours_linear", delta<fw::EluPlusOne>},
          {"synth_ours_dpfp1", delta<fw::Dpfp<1>>},
          {"synth_ours_dpfp2", delta<fw::Dpfp<2>>},
          {"synth_fwm_dpfp1", fast_weight_memory<fw::Dpfp<1>>},
          {"synth_fwm_tanh", fast_weight_memory<fw::TanhMap>},
          {"synth_softmax_softmax", softmax}};
}

}  // namespace reference
