#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <fastweights/core/leaves.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/simd/exponential.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/memories/attention/attention_window.hpp>
#include <fastweights/memories/attention/when_full.hpp>
#include <span>
#include <stdexcept>
#include <string>

namespace fw::inline FASTWEIGHTS_ABI {

/// Number of tokens that a key-value cache keeps.
struct CacheOptions {
  Index capacity = 64;                  ///< tokens that it has room for at first
  WhenFull when_full = WhenFull::grow;  ///< what it does with one more
  double scale = 0;                     ///< of scores; 0 for 1/√d_k
};

//| `KeyValueCache` | stores k, v | y = Σ softmax(k·q/√d_k) v | 2 (d_k + d_v) per stored token |
//|    | Vaswani et al. 2017, 1706.03762
/// Softmax attention over a cache of past tokens, the baseline of every fast-weight memory. Look-up
/// is exact, but its cost grows with the number of tokens.
///
///     y_t = Σ_i p_i v_i,   p = softmax over i ≤ t of (scale · k_i·q_t)
///
/// A full cache grows to twice its room, so that it keeps every token and a token costs O(1) copies
/// on average. With WhenFull::refuse it never takes more memory than at first: write throws
/// std::length_error, and scan throws before its first token, with the state unchanged. With
/// WhenFull::slide it overwrites the oldest token: attention over a window of `capacity` tokens.
/// Reading an empty cache gives 0.
///
/// Shapes: k and q d_k, v and y d_v; state (d_k + d_v)·room. Cost per token: 2 (d_k + d_v) flops
/// for every token in the cache, and no heap unless it grows; chunked_scan uses matrix products.
/// The gradient of a state has the room of that state, or less: what it lacks is 0. Vaswani et al.
/// 2017, arXiv 1706.03762, eq. 1, with causal mask; scale = 1/√d_k unless given.
template <class S, int Dk = Dynamic, int Dv = Dk> class KeyValueCache {
 public:
  using Scalar = S;
  using Signature = KeyValue<Dk, Dv>;
  static constexpr std::string_view name = "KeyValueCache";

  using Options = CacheOptions;  ///< its options

  /// The token at position p of the stream is in column p; of a cache that slides, in column
  /// p mod capacity.
  template <class C> struct State {
    mat<C, Dk, Dynamic> keys;    ///< d_k×room
    mat<C, Dv, Dynamic> values;  ///< d_v×room
    count<C> length;             ///< tokens written so far
    static constexpr auto names = fw::names("keys", "values", "length");
    static constexpr bool columns_grow = true;
  };
  using OwnedState = State<Owned<S>>;

  /// Throws std::invalid_argument when a size or the capacity is below 1.
  KeyValueCache(Sizes<Dk, Dv> sizes, Options options)
      : signature_{{sizes.key_size, sizes.value_size}}, options_(options) {
    signature_.check(name);
    detail::check_size<Dynamic>(name, "capacity", options.capacity);
    using std::sqrt;
    scale_ =
        options.scale == 0 ? S(1) / sqrt(S(static_cast<double>(sizes.key_size))) : S(options.scale);
  }
  /// With sizes that are fixed at compile time.
  explicit KeyValueCache(Options options) : KeyValueCache({}, options) {}

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const auto room = [&](Index rows) {
      return grows() ? MemberExtent::growing(rows, options_.capacity)
                     : MemberExtent(rows, options_.capacity);
    };
    return {room(signature_.dk), room(signature_.dv), {}};
  }
  std::array<CountRange, 1> count_ranges(const OwnedState& s) const {
    return {{{"length", s.length, 0, slides() ? max_count : room_of(s)}}};
  }
  template <class T> auto cast() const {
    return KeyValueCache<T, Dk, Dv>(signature_.sizes(), options_);
  }

  /// Throws std::length_error when `steps` more tokens do not fit and when_full is refuse.
  void check_capacity(const OwnedState& s, Index steps) const {
    if (options_.when_full == WhenFull::refuse && s.length + steps > options_.capacity)
      detail::raise<std::length_error>(
          "KeyValueCache: " + std::to_string(s.length) + " tokens held, " + std::to_string(steps) +
          " more given, the capacity is " + std::to_string(options_.capacity));
  }

  void write(OwnedState& s, const WriteToken<KeyValueCache>& t) const {
    check_capacity(s, 1);
    make_room(s, 1);
    s.keys.col(slot(s.length)) = t.key;
    s.values.col(slot(s.length)) = t.value;
    ++s.length;
  }

  /// Tokens that can be rolled back: all that the cache holds; none of one that slides, since
  /// it has overwritten older ones.
  Index roll_back_limit() const { return slides() ? 0 : max_count; }
  /// Rolls back the last tokens. Throws std::invalid_argument, and changes nothing, for more than
  /// the cache holds, and for a cache that slides.
  void roll_back(OwnedState& s, Index tokens) const {
    const Index most = std::min({s.length, room_of(s), roll_back_limit()});
    if (tokens < 0 || tokens > most)
      detail::throw_invalid({name, ": roll_back of ", std::to_string(tokens),
                             " tokens, expected 0 to ", std::to_string(most)});
    s.length -= tokens;
    s.keys.middleCols(s.length, tokens).setZero();
    s.values.middleCols(s.length, tokens).setZero();
  }

  /// Online softmax over blocks of the cache: sums are rescaled when a larger score occurs. The
  /// result does not depend on the order of the ring buffer.
  void read(const OwnedState& s, const ReadToken<KeyValueCache>& t,
            OutToken<KeyValueCache> y) const {
    constexpr Index block = 128;
    Eigen::Matrix<S, Dynamic, 1, Eigen::ColMajor, block, 1> scores;
    const Index held = held_in(s);
    S top = S(0), total = S(0);
    y.output.setZero();
    for (Index first = 0; first < held; first += block) {
      const Index count = std::min(block, held - first);
      scores.resize(count);
      scores.noalias() = s.keys.middleCols(first, count).transpose() * t.query;
      scores *= scale_;
      const S rescale = detail::exponentiate(scores, top, first == 0);
      y.output *= rescale;
      total = total * rescale + scores.sum();
      y.output.noalias() += s.values.middleCols(first, count) * scores;
    }
    if (held > 0) y.output /= total;
  }

  void chunk(OwnedState& s, const WriteSequence<KeyValueCache>& inputs,
             const ReadSequence<KeyValueCache>& queries, OutSequence<KeyValueCache> out) const {
    shared_chunk(s, inputs, {&queries, 1}, {&out, 1});
  }

  /// A chunk for several heads of queries, as in grouped-query attention.
  void shared_chunk(OwnedState& s, const WriteSequence<KeyValueCache>& inputs,
                    std::span<const ReadSequence<KeyValueCache>> queries,
                    std::span<OutSequence<KeyValueCache>> outs) const {
    const auto window = window_of(s, inputs);
    detail::Attention<S> attention;
    for (std::size_t h = 0; h < queries.size(); ++h)
      for (Index t = 0; t < inputs.key.cols(); t += attention.block) {
        attention.compute_weights(window, queries[h].query, t, scale_);
        detail::set_product(outs[h].output.middleCols(t, attention.count),
                            window.values.middleCols(attention.first, attention.length),
                            attention.weights, detail::one_block);
      }
    append(s, inputs);
  }

  /// The backward pass needs nothing of the forward pass but the initial state.
  struct Trace {};
  /// Gradients of a whole sequence from its initial state, in matrix products. Adds to those of the
  /// inputs and queries; `ds` becomes the gradient of the initial state.
  void backward(const OwnedState& initial, Trace&, const WriteSequence<KeyValueCache>& inputs,
                const ReadSequence<KeyValueCache>& queries,
                const OutGradSequence<KeyValueCache>& dy, OwnedState& ds,
                WriteGradSequence<KeyValueCache> dinputs,
                ReadGradSequence<KeyValueCache> dqueries) const {
    if (grows()) set_room(ds, std::max(room_of(initial), initial.length + inputs.key.cols()));
    const auto window = window_of(initial, inputs);
    auto dwindow = window;
    dwindow.keys.setZero();
    dwindow.values.setZero();
    move_final_gradient(initial, inputs.key.cols(), ds, dwindow);
    detail::Attention<S> attention;
    for (Index t = 0; t < inputs.key.cols(); t += attention.block) {
      attention.compute_weights(window, queries.query, t, scale_);
      attention.vjp(window, queries.query, dy.output, t, scale_, dwindow, dqueries.query);
    }
    dinputs.key += dwindow.keys.rightCols(inputs.key.cols());
    dinputs.value += dwindow.values.rightCols(inputs.key.cols());
    for (Index i = 0; i < window.held; ++i) {
      ds.keys.col(slot(initial.length - window.held + i)) += dwindow.keys.col(i);
      ds.values.col(slot(initial.length - window.held + i)) += dwindow.values.col(i);
    }
    if (grows()) set_room(ds, initial.keys.cols(), initial.values.cols());
  }

 private:
  using Window = detail::AttentionWindow<S, Dk, Dv>;

  bool grows() const { return options_.when_full == WhenFull::grow; }
  bool slides() const { return options_.when_full == WhenFull::slide; }
  Index slot(Index position) const { return slides() ? position % options_.capacity : position; }
  Index held_in(const OwnedState& s) const {
    return slides() ? std::min(s.length, options_.capacity) : s.length;
  }
  // The first of `steps` new tokens that are still there after the last one.
  Index first_kept(Index steps) const {
    return slides() ? std::max<Index>(0, steps - options_.capacity) : 0;
  }

  static Index room_of(const OwnedState& s) { return std::min(s.keys.cols(), s.values.cols()); }
  static void set_room(OwnedState& s, Index of_keys, Index of_values) {
    detail::resize_columns(s.keys, of_keys);
    detail::resize_columns(s.values, of_values);
  }
  static void set_room(OwnedState& s, Index room) { set_room(s, room, room); }
  // Before anything is written: without memory the state holds what it held.
  void make_room(OwnedState& s, Index steps) const {
    const Index needed = s.length + steps;
    if (!grows() || needed <= room_of(s)) return;
    Index room = std::max<Index>(1, room_of(s));
    while (room < needed) room *= 2;  // the same for one token at a time
    set_room(s, room);
  }

  // The tokens of the cache, oldest first, followed by the new tokens.
  Window window_of(const OwnedState& s, const WriteSequence<KeyValueCache>& inputs) const {
    Window window;
    window.held = held_in(s);
    window.capacity = slides() ? options_.capacity : window.held + inputs.key.cols();
    window.keys.resize(signature_.dk, window.held + inputs.key.cols());
    window.values.resize(signature_.dv, window.held + inputs.key.cols());
    for (Index i = 0; i < window.held; ++i) {
      window.keys.col(i) = s.keys.col(slot(s.length - window.held + i));
      window.values.col(i) = s.values.col(slot(s.length - window.held + i));
    }
    window.keys.rightCols(inputs.key.cols()) = inputs.key;
    window.values.rightCols(inputs.key.cols()) = inputs.value;
    return window;
  }

  void append(OwnedState& s, const WriteSequence<KeyValueCache>& inputs) const {
    const Index steps = inputs.key.cols();
    make_room(s, steps);
    for (Index t = first_kept(steps); t < steps; ++t) {
      s.keys.col(slot(s.length + t)) = inputs.key.col(t);
      s.values.col(slot(s.length + t)) = inputs.value.col(t);
    }
    s.length += steps;
  }

  // Moves the gradient of the final state to the tokens of the sequence that are still in it.
  // Overwritten tokens of the initial state get no gradient from the final state.
  void move_final_gradient(const OwnedState& initial, Index steps, OwnedState& ds,
                           Window& dwindow) const {
    for (Index t = first_kept(steps); t < steps; ++t) {
      auto dkey = ds.keys.col(slot(initial.length + t));
      auto dvalue = ds.values.col(slot(initial.length + t));
      dwindow.keys.col(dwindow.held + t) = dkey;
      dwindow.values.col(dwindow.held + t) = dvalue;
      dkey.setZero();
      dvalue.setZero();
    }
  }

  Signature signature_;
  Options options_;
  S scale_ = S(0);
};

}  // namespace fw
