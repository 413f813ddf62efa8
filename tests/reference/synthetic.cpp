#include <fastweights/any_memory/table.hpp>
#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/tanh.hpp>

#include "rule_run.hpp"
#include "support/affine_map.hpp"

namespace reference {

namespace {

using Linear = AffineMap<double>;

Matrix applied(const Linear& map, const Matrix& x) { return (map.weight * x).colwise() + map.bias; }
// Adds the gradients of the map and of its input.
void add_gradients(const Linear& map, const Matrix& x, const Matrix& dy, Matrix& dx, Linear& dmap) {
  dmap.weight += dy * x.transpose();
  dmap.bias += dy.rowwise().sum();
  dx += map.weight.transpose() * dy;
}

// A feature map whose type is known at run time.
struct AnyMap {
  std::function<Index(Index)> features;
  std::function<void(const Matrix& x, Matrix& y)> apply;
  std::function<void(const Matrix& x, const Matrix& y, const Matrix& dy, Matrix& dx)> apply_vjp;

  template <class Map> static AnyMap of(const Map& map) {
    return {[=](Index rows) { return map.features(rows); },
            [=](const Matrix& x, Matrix& y) { fw::apply(map, x, y); },
            [=](const Matrix& x, const Matrix& y, const Matrix& dy, Matrix& dx) {
              fw::apply_vjp(map, x, y, dy, dx);
            }};
  }
};

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
        strength(file.has("p_W_b__weight") ? load(file, "p_W_b") : Linear(key.weight.cols(), 1)) {}

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
  // The tokens from `first` on, for a memory with or without β.
  Views writes(const Memory& m, Index first) {
    const Index n = key.cols() - first;
    Views views{key.rightCols(n), value.rightCols(n)};
    if (m.written().size() == 3) views.push_back(beta.rightCols(n));
    return views;
  }
  Views reads(Index first) { return {query.rightCols(key.cols() - first)}; }
};

// The source does not project the first token's matrix to the unit ball. So the first token of a
// FastWeightMemory is written by hand. Returns the number of these tokens.
Index start(const Memory& m, const Tokens& in, const fw::AnyState<double>& s) {
  if (m.name() != "FastWeightMemory") return 0;
  entries(s, "W") = in.beta(0) * in.value.col(0) * in.key.col(0).transpose();
  return 1;
}
void start_vjp(const Tokens& in, const fw::AnyState<double>& ds, Tokens& din) {
  const auto dW = entries(ds, "W");
  din.beta(0) += in.value.col(0).dot(dW * in.key.col(0));
  din.key.col(0) += in.beta(0) * dW.transpose() * in.value.col(0);
}

// The memory's output, and the gradients of Σ dy·y.
Eigen::VectorXd read_memory(const Memory& m, Tokens& in, const Eigen::VectorXd& dy, Tokens& din) {
  auto state = m.initial_state(), ds = m.zero_gradient();
  const Index first = start(m, in, state), steps = in.key.cols() - first;
  Matrix out(in.value.rows(), steps), dout = Matrix::Zero(in.value.rows(), steps);
  dout.rightCols(1) = dy;
  scan_and_backward(m, state, in.writes(m, first), in.reads(first), {out}, {dout}, ds,
                    din.writes(m, first), din.reads(first));
  if (first > 0) start_vjp(in, ds, din);
  return out.rightCols(1);
}

Matrix mapped(const AnyMap& map, const Matrix& x) {
  Matrix y(map.features(x.rows()), x.cols());
  map.apply(x, y);
  return y;
}

// One sequence: y, with the gradients of the slow net added to dslow.
Eigen::VectorXd run_sequence(const Memory& m, const AnyMap& key_map, const AnyMap& query_map,
                             const Symbols& s, Index values, const Slow& slow,
                             const Eigen::VectorXd& dy, Slow& dslow) {
  const Index steps = Index(s.keys.size());
  Matrix x = Matrix::Zero(slow.key.weight.cols(), steps),
         query_embedding = slow.embedding.col(s.query);
  for (Index t = 0; t < steps; ++t) {
    x(s.values[std::size_t(t)], t) = 1;
    x.col(t).tail(slow.embedding.rows()) = slow.embedding.col(s.keys[std::size_t(t)]);
  }
  const Matrix k = applied(slow.key, x), q = applied(slow.query, query_embedding),
               logits = applied(slow.strength, x);
  Tokens in{mapped(key_map, k), x.topRows(values), (1 / (1 + (-logits).array().exp())).matrix(),
            Matrix::Zero(query_map.features(q.rows()), steps)};
  const Matrix query = mapped(query_map, q);
  in.query.rightCols(1) = query;

  Tokens din = in.zeros();
  const Eigen::VectorXd y = read_memory(m, in, dy, din);

  Matrix dk = 0 * k, dq = 0 * q, dx = 0 * x, dquery_embedding = 0 * query_embedding;
  const Matrix dquery = din.query.rightCols(1);
  key_map.apply_vjp(k, in.key, din.key, dk);
  query_map.apply_vjp(q, query, dquery, dq);
  const Matrix dlogits = (din.beta.array() * in.beta.array() * (1 - in.beta.array())).matrix();
  add_gradients(slow.key, x, dk, dx, dslow.key);
  add_gradients(slow.strength, x, dlogits, dx, dslow.strength);
  add_gradients(slow.query, query_embedding, dq, dquery_embedding, dslow.query);
  for (Index t = 0; t < steps; ++t)
    dslow.embedding.col(s.keys[std::size_t(t)]) += dx.col(t).tail(slow.embedding.rows());
  dslow.embedding.col(s.query) += dquery_embedding;
  return y;
}

// A bias shared by all keys does not change their softmax: its gradient is 0 up to rounding.
void compare_gradients(Case& file, const Slow& dslow) {
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
    file.gradient("grad_" + name + "__bias", dbias);
  }
}

// The memory `name` with the options, behind maps of keys and queries.
void run(Case& file, const std::string& name, const std::map<std::string, double>& options,
         const AnyMap& key_map, const AnyMap& query_map) {
  Array y = file.like("y_hat"), up = file["up_y_hat"], loss = file.like("their_loss", 0);
  const Index batch = y.axis(0), values = y.axis(1), key_rows = file["p_W_k__bias"].axis(0);
  const Memory m = fw::make_memory<double>(
      name, {.key_size = key_map.features(key_rows), .value_size = values, .more = options});
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
  compare_gradients(file, dslow);
}

void sum_rule(Case& file, const AnyMap& map) {
  run(file, "NormalisedLinearAttention", {{"epsilon", 1e-6}}, map, map);
}
template <class Map> void sum(Case& file) { sum_rule(file, AnyMap::of(Map())); }
void sum_favor(Case& file) {
  sum_rule(file, AnyMap::of(fw::FavorPlus<double>(Matrix(file["Omega"].matrix()))));
}
template <class Map> void delta(Case& file) {
  run(file, "DeltaRule", {}, AnyMap::of(fw::SumNormalised<Map>()),
      AnyMap::of(fw::Chain<Map, SumNormaliseWithEpsilon>()));
}
template <class Map> void fast_weight_memory(Case& file) {
  const AnyMap map = AnyMap::of(Map());
  run(file, "FastWeightMemory", {}, map, map);
}
void softmax(Case& file) {
  const Index batch = file.like("y_hat").axis(0);
  const Index steps = Index(file.integers("x_tokens").size()) / (2 * batch);
  const AnyMap map = AnyMap::of(fw::IdentityMap());
  run(file, "KeyValueCache", {{"capacity", double(steps)}}, map, map);
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
