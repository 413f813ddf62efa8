#pragma once

#include <algorithm>
#include <array>
#include <fastweights/core/check.hpp>
#include <fastweights/core/owned.hpp>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/math/products.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// A memory with a feature map, as one memory: it applies the feature map to all keys and queries.
/// For streaming without a layer; a FastWeightLayer has its own feature map.
///
///     memory.write(φ(k), v, …)      y = memory.read(φ(q))
///
/// φ is applied to all members with Role::key; all other members are passed unchanged, so that one
/// decay per key row means one decay per feature. The state is the memory's. A scan maps 64 tokens
/// at a time for a memory with a scan of its own, else it runs token by token. A memory that only
/// has a backward pass over sequences (KeyValueCache) has no gradients here.
///
/// Shapes: k and q d_key; the memory's d_k is φ's number of features for d_key. D is d_key if it is
/// fixed at compile time. Cost per token: the memory's and that of φ, on the stack; a scan keeps
/// 64 tokens of features in a buffer of the thread. Throws
/// std::invalid_argument when the number of features differs from the memory's d_k.
template <PureRead M, FeatureMap Map, int D = Dynamic> class FeatureMapped {
 public:
  using Scalar = typename M::Scalar;
  using Signature = typename M::Signature::template with_keys_of<D>;
  template <class C> using State = typename M::template State<C>;
  using OwnedState = StateOf<M>;
  static constexpr std::string_view name{detail::chain_name<Map, M>.data(),
                                         detail::chain_name<Map, M>.size()};
  static constexpr bool reads_first = fw::reads_first<M>();

  /// Maps keys and queries of `d_key` rows before they reach the memory. Throws
  /// std::invalid_argument unless the map gives as many features as the memory's keys have rows.
  FeatureMapped(M memory, Index d_key, Map map = {})
      : memory_(std::move(memory)), map_(std::move(map)), d_key_(d_key) {
    detail::check_size<D>(name, "d_key", d_key);
    if (map_.features(d_key) != features())
      detail::throw_mismatch(name, "a mapped key", map_.features(d_key), "rows", features(),
                             "the memory");
  }

  /// The memory behind the map.
  const M& memory() const { return memory_; }
  /// The feature map.
  const Map& map() const { return map_; }

  Signature signature() const {
    const auto inner = memory_.signature();
    return {{.dk = d_key_, .dv = inner.dv, .features = inner.features}};
  }
  State<Extents> state_extents() const { return memory_.state_extents(); }
  OwnedState initial_state() const { return fw::initial_state(memory_); }
  template <class T> auto cast() const {
    auto memory = memory_.template cast<T>();
    auto map = cast_feature_map<T>(map_);
    return FeatureMapped<decltype(memory), decltype(map), D>(std::move(memory), d_key_,
                                                             std::move(map));
  }

  // The body asks again: clang 14 instantiates it for explicit instances of other memories too.
  auto count_ranges(const OwnedState& s) const requires LimitsCounts<M> {
    if constexpr (LimitsCounts<M>) return memory_.count_ranges(s);
  }
  /// Throws what the memory throws if the state has no place for so many tokens.
  void check_capacity(const OwnedState& s, Index steps) const {
    if constexpr (requires { memory_.check_capacity(s, steps); }) memory_.check_capacity(s, steps);
  }

  static constexpr bool key_bounds_strength = fw::key_bounds_strength<M>();
  /// That of the memory, for the features of t.
  Violation violation(const WriteToken<FeatureMapped>& t) const {
    constexpr double largest = detail::largest_input<Scalar>();
    Violation found;
    with_features(t, [&](const auto& mapped) {
      const auto check = [&](const auto& key) {
        const double size = std::sqrt(detail::squared_norm(key));
        if (!detail::is_finite(size) || size > largest)
          found = {"the norm of a mapped key", size, "a finite number, below the largest input"};
      };
      std::apply([&](const auto&... keys) { (check(keys), ...); }, mapped);
      if constexpr (StabilityCondition<M>)
        if (!found) found = memory_.violation(with_keys<WriteToken<M>>(t, mapped));
    });
    return found;
  }

  /// The memory's condition of its state, for the features of each token: see fw::StateCondition.
  template <class F>
  void with_trial(const OwnedState& s, const F& f) const requires StateCondition<M> {
    memory_.with_trial(s, [&](auto&& trial) {
      f([&](const WriteToken<FeatureMapped>& t) {
        Violation found;
        with_features(
            t, [&](const auto& mapped) { found = trial(with_keys<WriteToken<M>>(t, mapped)); });
        return found;
      });
    });
  }

  void write(OwnedState& s, const WriteToken<FeatureMapped>& t) const {
    with_features(t, [&](const auto& mapped) {
      detail::run_write(memory_, s, with_keys<WriteToken<M>>(t, mapped));
    });
  }
  /// Also gives the errors of the memory's write: see fw::GivesErrors.
  template <class Errors>
  void write(OwnedState& s, const WriteToken<FeatureMapped>& t,
             Errors& errors) const requires GivesErrors<M> {
    with_features(t, [&](const auto& mapped) {
      const ErrorToken<M> inner{errors};
      detail::scan_implementation(memory_).write(s, with_keys<WriteToken<M>>(t, mapped),
                                                 inner.error);
    });
  }

  void read(const OwnedState& s, const ReadToken<FeatureMapped>& t,
            OutToken<FeatureMapped> y) const {
    with_features(t, [&](const auto& mapped) {
      memory_.read(s, with_keys<ReadToken<M>>(t, mapped), view<OutToken<M>>(y));
    });
  }

  // The bodies ask again, as count_ranges does.
  void step(OwnedState& s, const WriteToken<FeatureMapped>& t,
            const ReadToken<FeatureMapped>& query,
            OutToken<FeatureMapped> out) const requires FusedStep<M> {
    if constexpr (FusedStep<M>)
      with_features(t, [&](const auto& keys) {
        with_features(query, [&](const auto& queries) {
          detail::scan_implementation(memory_).step(s, with_keys<WriteToken<M>>(t, keys),
                                                    with_keys<ReadToken<M>>(query, queries),
                                                    view<OutToken<M>>(out));
        });
      });
  }
  void scan(OwnedState& s, const WriteSequence<FeatureMapped>& inputs,
            const ReadSequence<FeatureMapped>& queries,
            OutSequence<FeatureMapped> out) const requires CustomScan<M> {
    constexpr Index block = 64;
    const Index total = detail::steps_of(inputs, signature().write());
    if constexpr (CustomScan<M>)
      for (Index t = 0; t < total; t += block)
        scan_block(s, inputs, queries, out, t, std::min(block, total - t));
  }

  void write_vjp(const OwnedState& s, const WriteToken<FeatureMapped>& t, OwnedState& ds,
                 WriteGradToken<FeatureMapped> dt) const requires StepDifferentiable<M> {
    through_features(t, dt, [&](const auto& mapped, const auto& dmapped) {
      memory_.write_vjp(s, with_keys<WriteToken<M>>(t, mapped), ds,
                        with_keys<WriteGradToken<M>>(dt, dmapped));
    });
  }

  void read_vjp(const OwnedState& s, const ReadToken<FeatureMapped>& t,
                const OutGradToken<FeatureMapped>& dy, OwnedState& ds,
                ReadGradToken<FeatureMapped> dt) const requires StepDifferentiable<M> {
    through_features(t, dt, [&](const auto& mapped, const auto& dmapped) {
      memory_.read_vjp(s, with_keys<ReadToken<M>>(t, mapped), view<OutGradToken<M>>(dy), ds,
                       with_keys<ReadGradToken<M>>(dt, dmapped));
    });
  }

 private:
  static constexpr int Features = Map::template fixed_features<D>;
  Index features() const { return memory_.signature().dk; }

  // The number of keys among the members of R before member `end`.
  template <class R> static constexpr int keys_before(std::size_t end) {
    detail::assert_roles<R>();
    return static_cast<int>(std::count(R::roles.begin(), R::roles.begin() + end, Role::key));
  }
  template <class R> static constexpr int key_count = keys_before<R>(member_count<R>);

  // Member I of the inner memory's record: the features of a key, or the member itself.
  template <std::size_t I, class R, class Mapped>
  static auto& member(const R& t, const Mapped& mapped) {
    if constexpr (R::roles[I] == Role::key)
      return std::get<keys_before<R>(I)>(mapped);
    else
      return std::get<I>(members(t));
  }
  template <class To, class R, class Mapped> static To with_keys(const R& t, const Mapped& mapped) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return To{member<I>(t, mapped)...}; }
    (std::make_index_sequence<member_count<R>>{});
  }

  template <class R, class F> static void for_each_key(const F& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto visit = [&]<std::size_t At>() {
        if constexpr (R::roles[At] == Role::key) f.template operator()<At>();
      };
      (visit.template operator()<I>(), ...);
    }
    (std::make_index_sequence<member_count<R>>{});
  }

  // Key number Key of t.
  template <std::size_t Key, std::size_t I = 0, class R> static const auto& key_at(const R& t) {
    if constexpr (R::roles[I] == Role::key && keys_before<R>(I) == Key)
      return std::get<I>(members(t));
    else
      return key_at<Key, I + 1>(t);
  }

  // The columns of a token's keys, alike for all of them.
  template <class R> static constexpr int key_width() {
    if constexpr (key_count<R> == 0)
      return 1;
    else
      return std::remove_cvref_t<decltype(key_at<0>(std::declval<const R&>()))>::ColsAtCompileTime;
  }
  // Calls f with an uninitialised array of features for every key of a token.
  template <class R, class F> void with_scratch(const F& f) const {
    constexpr int width = key_width<R>();
    if constexpr (width == 1) {
      scratch<Scalar, Features, key_count<R>>(features(), f);
    } else {
      constexpr int size = Features == Dynamic ? Dynamic : Features * width;
      scratch<Scalar, size, key_count<R>>(features() * width, [&](auto&... entries) {
        using Mapped = Eigen::Map<detail::PlainArray<Scalar, Features, width>>;
        auto mapped = std::make_tuple(Mapped(entries.data(), features(), width)...);
        std::apply(f, mapped);
      });
    }
  }

  // Calls f(a tuple of the features of every key of t).
  template <class R, class F> void with_features(const R& t, const F& f) const {
    with_scratch<R>([&](auto&... mapped) {
      const auto all = std::tie(mapped...);
      for_each_key<R>([&]<std::size_t I>() {
        map_.map(std::get<I>(members(t)), std::get<keys_before<R>(I)>(all));
      });
      f(all);
    });
  }

  void scan_block(OwnedState& s, const WriteSequence<FeatureMapped>& inputs,
                  const ReadSequence<FeatureMapped>& queries, const OutSequence<FeatureMapped>& out,
                  Index first, Index count) const requires CustomScan<M> {
    const Signature sizes = signature();
    const auto write = detail::steps(inputs, sizes.write(), first, count);
    const auto read = detail::steps(queries, sizes.read(), first, count);
    const auto keys = features_of_sequence<WriteKeys>(write);
    const auto read_keys = features_of_sequence<ReadKeys>(read);
    detail::scan_implementation(memory_).scan(
        s, with_keys<WriteSequence<M>>(write, keys), with_keys<ReadSequence<M>>(read, read_keys),
        view<OutSequence<M>>(detail::steps(out, sizes.out(), first, count)));
  }

  // The features of every key of a sequence, in a buffer of the thread.
  struct WriteKeys;
  struct ReadKeys;
  template <class Use, class R> auto features_of_sequence(const R& sequence) const {
    using Mapped = Eigen::Map<detail::PlainArray<Scalar, Features, Dynamic>>;
    constexpr int keys = key_count<R>;
    const Index rows = features();
    Index columns = 0, first = 0;  // of all keys, and of those before one
    for_each_key<R>([&]<std::size_t I>() { columns += std::get<I>(members(sequence)).cols(); });
    Scalar* const buffer = detail::thread_buffer<Scalar, Use>(rows * columns);
    const auto next = [&](Index count) {
      first += count;
      return Mapped(buffer + (first - count) * rows, rows, count);
    };
    auto mapped = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<Mapped, keys>{next(key_at<I>(sequence).cols())...};
    }
    (std::make_index_sequence<static_cast<std::size_t>(keys)>{});
    for_each_key<R>([&]<std::size_t I>() {
      map_.map(std::get<I>(members(sequence)), mapped[keys_before<R>(I)]);
    });
    return mapped;
  }

  // Calls f(features of every key of t, their gradients), then adds the gradients of the keys.
  template <class R, class DR, class F>
  void through_features(const R& t, DR& dt, const F& f) const {
    with_features(t, [&](const auto& mapped) {
      with_scratch<R>([&](auto&... dmapped) {
        (dmapped.setZero(), ...);
        const auto gradients = std::tie(dmapped...);
        f(mapped, gradients);
        for_each_key<R>([&]<std::size_t I>() {
          constexpr auto key = keys_before<R>(I);
          map_.vjp(std::get<I>(members(t)), std::get<key>(mapped), std::get<key>(gradients),
                   std::get<I>(members(dt)));
        });
      });
    });
  }

  M memory_;
  [[no_unique_address]] Map map_;
  Index d_key_;
};

}  // namespace fw
