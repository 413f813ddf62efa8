#pragma once

#include <algorithm>
#include <array>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/math/softmax.hpp>
#include <fastweights/memories/adaptors/pooled_inputs.hpp>
#include <fastweights/memories/attention/when_full.hpp>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

namespace fw::inline FASTWEIGHTS_ABI {

/// Options of CachedSegments.
struct SegmentOptions {
  Index segment = 64;                    ///< tokens of a segment
  Index capacity = 32;                   ///< segments that it keeps, without the open one
  WhenFull when_full = WhenFull::slide;  ///< or refuse; it does not grow
  /// Every segment starts from the first state; else from the last state of the one before.
  bool restart = true;
};

namespace detail {

// True if a rule's state has a matrix W and nothing else.
template <class M> constexpr bool has_one_matrix() {
  Index leaves = 0;
  bool has_w = false;
  using R = typename M::template State<Extents>;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto visit = [&]<std::size_t At>() {
      using Member = member_t<R, At>;
      if constexpr (!Record<Member>) {
        ++leaves;
        has_w = has_w || R::names[At] == "W";
      } else {
        leaves += Index(member_count<Member>);
      }
    };
    (visit.template operator()<I>(), ...);
  }
  (std::make_index_sequence<member_count<R>>{});
  return has_w && leaves == 1;
}

// True if a memory reads y = W q: the kernels do so for their rules without a normaliser.
template <class M> constexpr bool reads_one_matrix() {
  if constexpr (PureRead<M> && StepDifferentiable<M> && !reads_first<M>() && has_kernel_members<M>)
    return has_one_matrix<M>() && member_count<ReadToken<M>> == 1 && member_count<OutToken<M>> == 1;
  else
    return false;
}

template <class M>
inline constexpr auto cached_name = [] {
  constexpr std::string_view prefix = "Cached ";
  std::array<char, prefix.size() + M::name.size()> text{};
  std::copy(M::name.begin(), M::name.end(), std::copy(prefix.begin(), prefix.end(), text.begin()));
  return text;
}();

}  // namespace detail

//| `CachedSegments<M>` | a rule with kernels and no state but W; every L tokens it keeps W⁽ⁱ⁾ =
//|   W and m⁽ⁱ⁾, the mean of an input p, and W starts anew or goes on | y = Σ γ_i W⁽ⁱ⁾ q over
//|   the segments kept and the open one, γ = softmax of u·m⁽ⁱ⁾ | as M, and 2 d_v d_k + 2 d_p a
//|   segment kept |  | Behrouz et al. 2026, 2602.24281
/// Memory Caching, as gated residual memory: a memory that keeps its state of every L tokens, and
/// reads all of them. A query u chooses among the segments by the means of a vector p, which the
/// tokens of a segment write:
///
///     at the end of segment i: W⁽ⁱ⁾ = W_t, m⁽ⁱ⁾ = mean of p over its tokens
///     y_t = Σ_{i<s} γ_i W⁽ⁱ⁾ q_t + γ_s W_t q_t      γ = softmax over i ≤ s of u_t·m⁽ⁱ⁾
///
/// m⁽ˢ⁾ of the open segment s is the mean over its tokens so far. A segment starts from the first
/// state (`restart`), or from the last state of the segment before. When `capacity` segments and
/// the open one are full, the next token overwrites the oldest; with WhenFull::refuse write throws
/// std::length_error instead, and scan throws before its first token, with the state unchanged. The
/// mean of the tokens so far, and p as an input of its own, are our choices: the paper leaves open
/// how it pools.
///
/// M is a rule with one matrix W that the kernels read, y = W q: DeltaRule, GatedDeltaRule,
/// LinearAttention, GatedLinearAttention, HebbianMemory, Comba, Efla, GatedDeltaRule2, rules of
/// your own above MatrixRule, all without a normaliser. It takes no feature map, inside or outside.
///
/// Shapes: those of M; p and u d_p. State: M's, d_v·d_k and d_p for each of `capacity` segments, a
/// matrix more with `restart`. Cost per token: that of M, and 2 d_v d_k + 2 d_p flops for every
/// segment kept. No heap; a backward pass makes one state at the start of a segment. Throws
/// std::invalid_argument when a size does not fit. Behrouz et al. 2026, arXiv 2602.24281, eq. 4, 9,
/// 10, section 3.4.
template <class M, int Dp = Dynamic> class CachedSegments {
  static_assert(detail::reads_one_matrix<M>(),
                "CachedSegments: the memory must be a rule of the kernels (kernels/rule.hpp) with "
                "write_vjp and read_vjp, that reads y = W q after its write, and whose state is W");

 public:
  using Scalar = typename M::Scalar;
  using Signature = PooledInputs<typename M::Signature, Dp>;
  static constexpr std::string_view name{detail::cached_name<M>.data(),
                                         detail::cached_name<M>.size()};

  /// The open segment, and those that are kept: segment i is in place i mod capacity.
  template <class C> struct State {
    typename M::template State<C> memory;  ///< of the open segment
    /// W⁽ⁱ⁾ side by side, d_v×(d_k·capacity); with `restart` one more, the first state.
    mat<C, Signature::value_rows, Dynamic> segments;
    mat<C, Dp, Dynamic> means;  ///< m⁽ⁱ⁾, d_p×capacity
    vec<C, Dp> sum;             ///< of p over the tokens of the open segment
    count<C> length;            ///< tokens written so far
    static constexpr auto names = fw::names("memory", "segments", "means", "sum", "length");
  };
  using OwnedState = State<Owned<Scalar>>;

  /// `pooled_size` is d_p. Throws std::invalid_argument when a size or an option is below 1, or
  /// when_full is grow.
  CachedSegments(M memory, Index pooled_size, SegmentOptions options = {})
      : memory_(std::move(memory)), pooled_size_(pooled_size), options_(options) {
    detail::check_size<Dp>(name, "the size of pooled", pooled_size);
    detail::check_size<Dynamic>(name, "segment", options.segment);
    detail::check_size<Dynamic>(name, "capacity", options.capacity);
    check_most("segment", options.segment, max_count);
    check_most("capacity", options.capacity, std::numeric_limits<Index>::max() / dk() - 1);
    if (options.when_full == WhenFull::grow)
      detail::throw_invalid({name, ": when_full is grow, expected slide or refuse"});
  }

  /// The memory of a segment.
  const M& memory() const { return memory_; }
  /// The options it was made with.
  const SegmentOptions& options() const { return options_; }

  Signature signature() const { return {memory_.signature(), pooled_size_}; }
  State<Extents> state_extents() const {
    const Index matrices = options_.capacity + (options_.restart ? 1 : 0);
    return {memory_.state_extents(),
            {memory_.signature().dv, dk() * matrices},
            {pooled_size_, options_.capacity},
            {pooled_size_, 1},
            {}};
  }
  OwnedState initial_state() const {
    auto s = detail::zeros<OwnedState>(state_extents());
    s.memory = fw::initial_state(memory_);
    return s;
  }
  std::array<CountRange, 1> count_ranges(const OwnedState& s) const {
    return {{{"length", s.length, 0, most_tokens()}}};
  }
  template <class T> auto cast() const {
    auto memory = memory_.template cast<T>();
    return CachedSegments<decltype(memory), Dp>(std::move(memory), pooled_size_, options_);
  }

  /// Throws std::length_error when `steps` more tokens do not fit and when_full is refuse.
  void check_capacity(const OwnedState& s, Index steps) const {
    if (options_.when_full == WhenFull::refuse && steps > most_tokens() - s.length)
      detail::raise<std::length_error>(std::string(name) + ": " + std::to_string(s.length) +
                                       " tokens written, " + std::to_string(steps) +
                                       " more given, the capacity is " +
                                       std::to_string(options_.capacity) + " segments of " +
                                       std::to_string(options_.segment) + " and an open one");
  }

  static constexpr bool key_bounds_strength = fw::key_bounds_strength<M>();
  /// That of the memory.
  Violation violation(const WriteToken<CachedSegments>& t) const {
    if constexpr (StabilityCondition<M>) return memory_.violation(inner<WriteToken<M>>(t));
    return {};
  }

  void write(OwnedState& s, const WriteToken<CachedSegments>& t) const {
    check_capacity(s, 1);
    if (closes_segment(s)) close_segment(s);
    if (options_.restart && s.length == 0) first_state(s) = s.memory.W;
    detail::run_write(memory_, s.memory, inner<WriteToken<M>>(t));
    s.sum += t.pooled;
    ++s.length;
  }

  void read(const OwnedState& s, const ReadToken<CachedSegments>& t,
            OutToken<CachedSegments> y) const {
    detail::set_product_with_vector(y.output, s.memory.W, t.query);
    if (kept(s) == 0) return;
    with_weights(s, t.segment_query, [&](const auto& weights) {
      y.output *= weights[kept(s)];
      scratch<Scalar, Signature::value_rows>(y.output.size(), [&](auto& answer) {
        for (Index i = 0; i < kept(s); ++i) {
          detail::set_product_with_vector(answer, matrix(s, i), t.query);
          y.output += weights[i] * answer;
        }
      });
    });
  }

  void write_vjp(const OwnedState& s, const WriteToken<CachedSegments>& t, OwnedState& ds,
                 WriteGradToken<CachedSegments> dt) const {
    const auto token = inner<WriteToken<M>>(t);
    const auto dtoken = inner<WriteGradToken<M>>(dt);
    dt.pooled += ds.sum;
    if (closes_segment(s) && options_.restart) {
      auto start = s.memory;
      start.W = first_state(s);
      memory_.write_vjp(start, token, ds.memory, dtoken);
    } else {
      memory_.write_vjp(s.memory, token, ds.memory, dtoken);
    }
    if (closes_segment(s)) close_segment_vjp(s, ds);
    if (options_.restart && s.length == 0) {
      ds.memory.W += first_state(ds);
      first_state(ds).setZero();
    }
  }

  void read_vjp(const OwnedState& s, const ReadToken<CachedSegments>& t,
                const OutGradToken<CachedSegments>& dy, OwnedState& ds,
                ReadGradToken<CachedSegments> dt) const {
    const Index closed = kept(s);
    with_weights(s, t.segment_query, [&](auto& weights) {
      scratch<Scalar, Dynamic>(closed + 1, [&](auto& dweights) {
        scratch<Scalar, Signature::key_rows>(dk(), [&](auto& back) {
          const auto read_matrix = [&](Index i, const auto& W, auto&& dW) {
            back.noalias() = W.transpose() * dy.output;
            dweights[i] = back.cwiseProduct(t.query).sum();
            back *= weights[i];
            dt.query += back;
            back = weights[i] * t.query;
            dW.noalias() += dy.output * back.transpose();
          };
          for (Index i = 0; i < closed; ++i) read_matrix(i, matrix(s, i), matrix(ds, i));
          read_matrix(closed, s.memory.W, ds.memory.W);
        });
        detail::softmax_vjp_in_place(weights, dweights);
        weights_vjp(s, t.segment_query, dweights, ds, dt.segment_query);
      });
    });
  }

 private:
  static void check_most(std::string_view which, Index given, Index most) {
    if (given > most)
      detail::throw_invalid({name, ": ", which, " is ", std::to_string(given),
                             ", expected at most ", std::to_string(most)});
  }
  Index dk() const { return memory_.signature().dk; }
  // The largest number of tokens of a state; those of a cache that slides are not limited.
  Index most_tokens() const {
    const bool limited =
        options_.when_full == WhenFull::refuse && options_.capacity < max_count / options_.segment;
    return limited ? (options_.capacity + 1) * options_.segment : max_count;
  }

  // A segment that is full stays open until the next token comes.
  bool closes_segment(const OwnedState& s) const {
    return s.length > 0 && s.length % options_.segment == 0;
  }
  // Segments that are closed, before the open one.
  Index closed_segments(const OwnedState& s) const {
    return s.length == 0 ? 0 : (s.length - 1) / options_.segment;
  }
  Index kept(const OwnedState& s) const { return std::min(closed_segments(s), options_.capacity); }
  // The place of the open segment once it is closed.
  Index place(const OwnedState& s) const { return closed_segments(s) % options_.capacity; }
  // The tokens of the open segment; 1 before the first one, whose sum is 0.
  Scalar open_tokens(const OwnedState& s) const {
    return Scalar(
        static_cast<double>(std::max<Index>(1, s.length - closed_segments(s) * options_.segment)));
  }

  template <class State> auto matrix(State& s, Index i) const {
    return s.segments.middleCols(i * dk(), dk());
  }
  template <class State> auto first_state(State& s) const { return matrix(s, options_.capacity); }

  void close_segment(OwnedState& s) const {
    matrix(s, place(s)) = s.memory.W;
    s.means.col(place(s)) = s.sum / open_tokens(s);
    s.sum.setZero();
    if (options_.restart) s.memory.W = first_state(s);
  }
  // `s` is the state before the segment was closed. What it overwrote has no gradient.
  void close_segment_vjp(const OwnedState& s, OwnedState& ds) const {
    if (options_.restart) {
      first_state(ds) += ds.memory.W;
      ds.memory.W.setZero();
    }
    ds.memory.W += matrix(ds, place(s));
    matrix(ds, place(s)).setZero();
    ds.sum = ds.means.col(place(s)) / open_tokens(s);
    ds.means.col(place(s)).setZero();
  }

  // Calls f(γ): of the segments kept by their places, then of the open one.
  template <class U, class F> void with_weights(const OwnedState& s, const U& u, const F& f) const {
    const Index closed = kept(s);
    scratch<Scalar, Dynamic>(closed + 1, [&](auto& weights) {
      weights.head(closed).noalias() = s.means.leftCols(closed).transpose() * u;
      weights[closed] = s.sum.cwiseProduct(u).sum() / open_tokens(s);
      detail::softmax_in_place(weights);
      f(weights);
    });
  }
  template <class U, class D, class DU>
  void weights_vjp(const OwnedState& s, const U& u, const D& dscores, OwnedState& ds,
                   DU& du) const {
    const Index closed = kept(s);
    ds.means.leftCols(closed).noalias() += u * dscores.head(closed).transpose();
    du.noalias() += s.means.leftCols(closed) * dscores.head(closed);
    const Scalar dopen = dscores[closed] / open_tokens(s);
    ds.sum += dopen * u;
    du += dopen * s.sum;
  }

  // The token of the memory: all members but the last one.
  template <class To, class R> static To inner(const R& t) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return To{std::get<I>(members(t))...};
    }
    (std::make_index_sequence<member_count<To>>{});
  }

  M memory_;
  Index pooled_size_;
  SegmentOptions options_;
};

}  // namespace fw
