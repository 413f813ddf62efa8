#pragma once

#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/layers/parts.hpp>
#include <functional>
#include <span>
#include <string>
#include <string_view>

/// \file
/// A layer around any memory: the memory's signature says which projections it has. For the gated
/// delta rule, of every head:
///
///     k, q = φ(W_k x), φ(W_q x)     v = W_v x     β = σ(W_β x)     α = σ(W_α x)^(1/16)
///     o = scale · memory(k, v, β, α, q)            y = W_o [norm(o_1); …; norm(o_H)]
///
/// Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, section 4; its language models use the output
/// scale 1/√d_head. The root of a decay is that of Yang et al. 2023, arXiv 2312.06635, section 4:
/// with weights of zero a memory forgets 4 % per token.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Norms of every head's output. The heads share the weights.
enum class HeadNorm {
  none,  ///< o
  rms,   ///< w ⊙ rms(o)
  layer  ///< w ⊙ standardise(o) + b
};

/// Options of fast_weights.
struct FastWeightsOptions {
  Index heads = 1;
  Index key_size = 0;              ///< rows of a key before φ; 0: those of the memory's keys
  double scale = 1;                ///< factor of the memory's outputs
  bool bias = false;               ///< of all projections
  HeadNorm norm = HeadNorm::none;  ///< with ε = 1e-5
  bool sums_heads = false;         ///< y = W_o Σ_h norm(o_h), over all columns of the outputs
  bool allow_unstable = false;     ///< accept a φ whose keys can make the memory unstable
};

namespace detail {

/// Rows of the first key among these members; 0 without one.
inline Index key_rows(std::span<const SignatureMember> members) {
  for (const SignatureMember& each : members)
    if (each.role == Role::key) return each.rows;
  return 0;
}

/// A feature map φ of keys, without its type: what depends on the scalar alone is compiled once.
template <class S> struct KeyMap {
  std::string_view name;
  bool is_identity;
  std::function<Index(Index)> features;                               ///< of a number of rows
  std::function<Value<S>(const Value<S>&, Index)> features_of_heads;  ///< of stacked heads
};
template <class S, class Map> KeyMap<S> key_map(const Map& map) {
  const auto features = [map](Index rows) { return map.features(rows); };
  if constexpr (std::is_same_v<Map, IdentityMap>)
    return {Map::name, true, features, [](const Value<S>& keys, Index) { return keys; }};
  else
    return {Map::name, false, features,
            [map](const Value<S>& keys, Index heads) { return feature_map(keys, map, heads); }};
}

/// Makes one member of a signature from x, for all heads.
template <class S>
Value<S> head_input(const Value<S>& x, const std::string& record, const SignatureMember& member,
                    const FastWeightsOptions& o, Index key_size, const KeyMap<S>& map) {
  const Index rows = member.role == Role::key ? key_size : member.rows;
  const Index columns = o.heads * fw::detail::per_token(member.extent()).width;
  const std::string name = record + '.' + std::string(member.name);
  const Value<S> y = linear(x, name, columns * rows, o.bias);
  switch (member.role) {
    case Role::key:
      return map.features_of_heads(y, columns);
    case Role::distribution:
      return feature_map(y, SoftmaxMap(), columns);
    case Role::strength:
      return sigmoid(y);
    case Role::decay:
      return exp((1.0 / 16) * log_sigmoid(y));
    case Role::draw:
      fw::detail::throw_invalid(
          {x.builder->path(name), ": is a random draw, which no layer makes"});
    default:
      return y;
  }
}

/// Parameters for every array of a memory's state that is learned, of every head: NAME.0.W, and so
/// on. draw(array) gives the distribution.
template <class S, class DrawOf>
LearnedState<S> learned_state(Builder<S>& net, const std::string& name, const AnyMemory<S>& memory,
                              Index heads, Learned learned, const DrawOf& draw) {
  LearnedState<S> all({}, learned);
  const AnyState<S> state = memory.initial_state();
  for_each_learned(state, learned, [&](const fw::detail::Leaf& array, const auto& path) {
    std::vector<Value<S>> of_heads;
    for (Index h = 0; h < heads; ++h) {
      const std::string full = name + '.' + std::to_string(h) + '.' + path.text();
      of_heads.push_back(array.cols == 1
                             ? parameter(net, full, array.rows, draw(array))
                             : state_parameter(net, full, array.rows, array.cols, draw(array)));
    }
    all.values.push_back(concatenate(of_heads));
  });
  return all;
}

/// The slow weights of a memory. Those that start at zero are drawn normal, with deviation
/// 1/√(rows of the output), as the code of arXiv 2106.06295 does.
template <class S>
LearnedState<S> slow_weights(Builder<S>& net, const AnyMemory<S>& memory, Index heads) {
  if (!memory.can().keeps_slow_weights) return {};
  const double deviation = 1 / std::sqrt(double(memory.given()[0].rows));
  const auto draw = [deviation](const fw::detail::Leaf& array) -> Initialiser {
    const double first = double(Eigen::numext::real(array.entries<S>()(0)));
    if (first != 0) return constant_initialiser(first);
    return [deviation](double, double normal) { return deviation * normal; };
  };
  return learned_state(net, "slow", memory, heads, Learned::slow_weights, draw);
}

template <class S>
Value<S> fast_weights_output(const Value<S>& x, Value<S> o, const FastWeightsOptions& options) {
  const NormOptions norm{.epsilon = 1e-5, .groups = options.heads, .shared = true, .bias = true};
  if (options.scale != 1) o = options.scale * o;
  if (options.norm == HeadNorm::rms) o = rms_norm(o, "norm", norm);
  if (options.norm == HeadNorm::layer) o = layer_norm(o, "norm", norm);
  if (options.sums_heads) {
    const Index rows = o.rows() / options.heads;
    const Value<S> all = o;
    o = all.rows_of(0, rows);
    for (Index h = 1; h < options.heads; ++h) o = o + all.rows_of(h * rows, rows);
  }
  return linear(o, "output", x.rows(), options.bias);
}

/// The values that a memory writes and reads with, made from x.
template <class S> struct MemoryInputs { std::vector<Value<S>> written, queries; };
template <class S>
MemoryInputs<S> memory_inputs(const Value<S>& x, const AnyMemory<S>& rule,
                              const FastWeightsOptions& o, Index key_size, const KeyMap<S>& map) {
  if (rule.can().learns_initial_state)
    fw::detail::throw_invalid({x.builder->path(), ": from a zero state ", rule.name(),
                               " writes nothing; self_referential() learns the first state"});
  MemoryInputs<S> inputs;
  for (const SignatureMember& each : rule.written()) {
    if (each.chunks && each.width != 1)
      fw::detail::throw_invalid({x.builder->path(), ": ", rule.name(), " takes chunks of ",
                                 std::to_string(each.width), " tokens, expected one at a time"});
    inputs.written.push_back(head_input(x, "write", each, o, key_size, map));
  }
  for (const SignatureMember& each : rule.read_with())
    inputs.queries.push_back(head_input(x, "read", each, o, key_size, map));
  return inputs;
}

template <class S>
Value<S> fast_weights(const Value<S>& x, const AnyMemory<S>& rule, const FastWeightsOptions& o,
                      Index key_size, const KeyMap<S>& map) {
  const MemoryInputs<S> in = memory_inputs(x, rule, o, key_size, map);
  FastWeightsOptions columns = o;  // every column of a head's outputs has a norm of its own
  columns.heads *= fw::detail::per_token(rule.given().front().extent()).width;
  return fast_weights_output(
      x, memory(rule, in.written, in.queries, "memory", slow_weights(*x.builder, rule, o.heads)),
      columns);
}

/// The number of rows of a key before φ, which has to make the memory's keys of it.
template <class S>
Index key_size(const std::string& path, const AnyMemory<S>& rule, const FastWeightsOptions& o,
               const KeyMap<S>& map) {
  fw::detail::check_size<Dynamic>(path, "heads", o.heads);
  const Index asked = key_rows(rule.read_with());
  const Index rows = asked > 0 ? asked : key_rows(rule.written());
  const Index size = o.key_size > 0 ? o.key_size : rows;
  if (rows > 0 && map.features(size) != rows)
    fw::detail::throw_mismatch(path, "the feature map", map.features(size), "features", rows,
                               "the memory");
  if (rows == 0 && !map.is_identity)
    fw::detail::throw_invalid({path, ": the feature map is ", map.name,
                               ", expected IdentityMap, as ", rule.name(), " takes no keys"});
  return size;
}

/// Throws if a checked write refuses keys that φ makes.
template <class S, class Map>
void check_sample_keys(const AnyMemory<S>& rule, const Map& map, Index size) {
  const Matrix<S> keys = fw::detail::sample_keys<S>(size);
  Matrix<S> features(map.features(size), keys.cols());
  map.map(keys, features);
  std::vector<Matrix<S>> token;
  for (Index j = 0; j < keys.cols(); ++j) {
    token.clear();
    for (const SignatureMember& each : rule.written()) {
      const Index width = fw::detail::per_token(each.extent()).width;
      Matrix<S>& member = token.emplace_back(Matrix<S>::Zero(each.rows, width));
      if (each.role == Role::key) member = features.col(j).replicate(1, width);
      if (each.role == Role::distribution) member.setConstant(S(1) / S(double(each.rows)));
      if (each.role == Role::strength || each.role == Role::decay) member.setOnes();
    }
    const std::vector<AnyView<const S>> views(token.begin(), token.end());
    AnyState<S> state = rule.initial_state();
    rule.checked_write(state, std::span<const AnyView<const S>>(views));
  }
}

}  // namespace detail

/// A multi-head layer around a memory of any kind; `map` is φ. A memory with slow weights of its
/// own learns them, for every head.
///
///     x = fast_weights(x, "mixer", fw::DeltaRule<float>({.key_size = 16}), {.heads = 4},
///                      fw::L2Normalise());
///
/// Weights: write.key, write.value, … for what the memory writes, read.query, … for what it reads
/// with, norm, output, and slow. Cost per token: 2 d_model times the rows of all projections, plus
/// H steps of the memory. Throws std::invalid_argument when the number of features of φ is not that
/// of the memory's keys; and for a delta rule whose keys nothing bounds, unless `allow_unstable`.
template <class S, Memory M, FeatureMap Map = IdentityMap>
Value<S> fast_weights(const Value<S>& in, const std::string& name, M rule,
                      const FastWeightsOptions& o = {}, Map map = {}) {
  return module(name, in, [&](const Value<S>& x) {
    const AnyMemory<S> any(rule);
    const detail::KeyMap<S> keys = detail::key_map<S>(map);
    const Index size = detail::key_size(x.builder->path(), any, o, keys);
    if (!o.allow_unstable) check_stable_keys(x, rule, map, size);
    return detail::fast_weights(x, any, o, size, keys);
  });
}

/// A multi-head layer around a memory that is chosen at run time, such as one of fw::make_memory.
template <class S, FeatureMap Map = IdentityMap>
Value<S> fast_weights(const Value<S>& in, const std::string& name, const AnyMemory<S>& rule,
                      const FastWeightsOptions& o = {}, Map map = {}) {
  return module(name, in, [&](const Value<S>& x) {
    const detail::KeyMap<S> keys = detail::key_map<S>(map);
    const Index size = detail::key_size(x.builder->path(), rule, o, keys);
    if (!o.allow_unstable && rule.can().states_stability)
      detail::check_sample_keys(rule, map, size);
    return detail::fast_weights(x, rule, o, size, keys);
  });
}

}  // namespace fw::networks

#define FASTWEIGHTS_FAST_WEIGHTS(prefix, S)                                                    \
  prefix template Value<S> feature_map(const Value<S>&, SoftmaxMap, Index);                    \
  prefix template Index detail::key_size(const std::string&, const AnyMemory<S>&,              \
                                         const FastWeightsOptions&, const detail::KeyMap<S>&); \
  prefix template detail::MemoryInputs<S> detail::memory_inputs(                               \
      const Value<S>&, const AnyMemory<S>&, const FastWeightsOptions&, Index,                  \
      const detail::KeyMap<S>&);                                                               \
  prefix template Value<S> detail::fast_weights_output(const Value<S>&, Value<S>,              \
                                                       const FastWeightsOptions&);             \
  prefix template Value<S> detail::fast_weights(const Value<S>&, const AnyMemory<S>&,          \
                                                const FastWeightsOptions&, Index,              \
                                                const detail::KeyMap<S>&)

#ifdef FASTWEIGHTS_COMPILED
namespace fw::inline FASTWEIGHTS_ABI::networks {
FASTWEIGHTS_FAST_WEIGHTS(extern, float);
FASTWEIGHTS_FAST_WEIGHTS(extern, double);
#ifdef FASTWEIGHTS_COMPILED_COMPLEX
FASTWEIGHTS_FAST_WEIGHTS(extern, std::complex<double>);
#endif
}  // namespace fw::networks
#endif
