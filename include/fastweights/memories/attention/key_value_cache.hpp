#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/memories/attention/attention_window.hpp>
#include <span>
#include <stdexcept>
#include <string>

namespace fw::inline FASTWEIGHTS_ABI {

/// What a full key-value cache does with a new token: overwrite the oldest token, or throw.
enum class WhenFull {
  slide,  ///< overwrite the oldest token
  refuse  ///< throw std::length_error
};

/// Softmax attention over a cache of past tokens, the baseline of every fast-weight memory. Look-up
/// is exact, but its cost grows with the number of tokens.
///
///     y_t = Σ_i p_i v_i,   p = softmax over i ≤ t of (scale · k_i·q_t)
///
/// The capacity is fixed at construction. A full cache slides (the oldest token is overwritten) or
/// refuses: write throws std::length_error, and scan throws before its first token, with the state
/// unchanged. Reading an empty cache gives 0.
///
/// Shapes: k and q d_k, v and y d_v; state (d_k + d_v)·capacity. Cost per token: 2 (d_k + d_v)
/// flops for every token in the cache, and no heap; chunked_scan uses matrix products. Vaswani et
/// al. 2017, arXiv 1706.03762, eq. 1, with causal mask; scale = 1/√d_k unless given.
template <class S, int Dk = Dynamic, int Dv = Dk> class KeyValueCache {
 public:
  using Scalar = S;
  using Signature = KeyValue<Dk, Dv>;
  static constexpr std::string_view name = "KeyValueCache";

  /// Options of a KeyValueCache.
  struct Options {
    Index capacity = 0;                    ///< tokens it can hold
    WhenFull when_full = WhenFull::slide;  ///< what a full cache does with a new token
    S scale = S(0);                        ///< 0 for 1/√d_k
  };

  /// A ring buffer: the token at position p of the stream is in column p mod capacity.
  template <class C> struct State {
    mat<C, Dk, Dynamic> keys;    ///< d_k×capacity
    mat<C, Dv, Dynamic> values;  ///< d_v×capacity
    count<C> length;             ///< tokens written so far
    static constexpr auto names = fw::names("keys", "values", "length");
  };
  using OwnedState = State<Owned<S>>;

  /// Throws std::invalid_argument when a size or the capacity is below 1.
  KeyValueCache(Sizes<Dk, Dv> sizes, Options options)
      : signature_{{sizes.key_size, sizes.value_size}}, options_(options) {
    signature_.check(name);
    detail::check_size<Dynamic>(name, "capacity", options.capacity);
    using std::sqrt;
    if (options_.scale == S(0))
      options_.scale = S(1) / sqrt(S(static_cast<double>(sizes.key_size)));
  }
  /// With sizes that are fixed at compile time.
  explicit KeyValueCache(Options options) : KeyValueCache({}, options) {}

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    return {{signature_.dk, options_.capacity}, {signature_.dv, options_.capacity}, {}};
  }
  std::array<CountRange, 1> count_ranges(const OwnedState& s) const {
    const bool slides = options_.when_full == WhenFull::slide;
    return {{{"length", s.length, 0, slides ? max_count : options_.capacity}}};
  }
  template <class T> auto cast() const {
    return KeyValueCache<T, Dk, Dv>(signature_.sizes(),
                                    {options_.capacity, options_.when_full, T(options_.scale)});
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
    s.keys.col(slot(s.length)) = t.key;
    s.values.col(slot(s.length)) = t.value;
    ++s.length;
  }

  /// Online softmax over blocks of the cache: sums are rescaled when a larger score occurs. The
  /// result does not depend on the order of the ring buffer.
  void read(const OwnedState& s, const ReadToken<KeyValueCache>& t,
            OutToken<KeyValueCache> y) const {
    constexpr Index block = 128;
    Eigen::Matrix<S, Dynamic, 1, Eigen::ColMajor, block, 1> scores;
    const Index held = std::min(s.length, options_.capacity);
    S top = S(0), total = S(0);
    y.output.setZero();
    for (Index first = 0; first < held; first += block) {
      const Index count = std::min(block, held - first);
      scores.resize(count);
      scores.noalias() = s.keys.middleCols(first, count).transpose() * t.query;
      scores *= options_.scale;
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

  /// The same for several heads of queries, as in grouped-query attention.
  void shared_chunk(OwnedState& s, const WriteSequence<KeyValueCache>& inputs,
                    std::span<const ReadSequence<KeyValueCache>> queries,
                    std::span<OutSequence<KeyValueCache>> outs) const {
    const auto window = window_of(s, inputs);
    detail::Attention<S> attention;
    for (std::size_t h = 0; h < queries.size(); ++h)
      for (Index t = 0; t < inputs.key.cols(); t += attention.block) {
        attention.compute_weights(window, queries[h].query, t, options_.scale);
        detail::set_product(outs[h].output.middleCols(t, attention.count),
                            window.values.middleCols(attention.first, attention.length),
                            attention.weights, detail::all_at_once);
      }
    append(s, inputs);
  }

  /// Gradients of a whole sequence from its initial state, in matrix products. Adds to those of the
  /// inputs and queries; `ds` becomes the gradient of the initial state.
  void backward(const OwnedState& initial, const WriteSequence<KeyValueCache>& inputs,
                const ReadSequence<KeyValueCache>& queries,
                const OutGradSequence<KeyValueCache>& dy, OwnedState& ds,
                WriteGradSequence<KeyValueCache> dinputs,
                ReadGradSequence<KeyValueCache> dqueries) const {
    const auto window = window_of(initial, inputs);
    auto dwindow = window;
    dwindow.keys.setZero();
    dwindow.values.setZero();
    move_final_gradient(initial, inputs.key.cols(), ds, dwindow);
    detail::Attention<S> attention;
    for (Index t = 0; t < inputs.key.cols(); t += attention.block) {
      attention.compute_weights(window, queries.query, t, options_.scale);
      attention.vjp(window, queries.query, dy.output, t, options_.scale, dwindow, dqueries.query);
    }
    dinputs.key += dwindow.keys.rightCols(inputs.key.cols());
    dinputs.value += dwindow.values.rightCols(inputs.key.cols());
    for (Index i = 0; i < window.held; ++i) {
      ds.keys.col(slot(initial.length - window.held + i)) += dwindow.keys.col(i);
      ds.values.col(slot(initial.length - window.held + i)) += dwindow.values.col(i);
    }
  }

 private:
  using Window = detail::AttentionWindow<S, Dk, Dv>;

  Index slot(Index position) const { return position % options_.capacity; }

  // The tokens of the cache, oldest first, followed by the new tokens.
  Window window_of(const OwnedState& s, const WriteSequence<KeyValueCache>& inputs) const {
    Window window;
    window.held = std::min(s.length, options_.capacity);
    window.capacity = options_.capacity;
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
    for (Index t = std::max<Index>(0, steps - options_.capacity); t < steps; ++t) {
      s.keys.col(slot(s.length + t)) = inputs.key.col(t);
      s.values.col(slot(s.length + t)) = inputs.value.col(t);
    }
    s.length += steps;
  }

  // Moves the gradient of the final state to the tokens of the sequence that are still in it.
  // Overwritten tokens of the initial state get no gradient from the final state.
  void move_final_gradient(const OwnedState& initial, Index steps, OwnedState& ds,
                           Window& dwindow) const {
    for (Index t = std::max<Index>(0, steps - options_.capacity); t < steps; ++t) {
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
};

}  // namespace fw
