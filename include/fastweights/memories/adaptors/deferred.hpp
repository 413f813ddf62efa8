#pragma once

#include <algorithm>
#include <array>
#include <fastweights/core/check.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/kernels/decode/deferred.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/memories/rules/normaliser.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// A rule that uses the kernels: DeltaRule, GatedDeltaRule, LinearAttention, GatedLinearAttention,
/// HebbianMemory, and your own rules with the members listed in kernels/rule.hpp.
template <class M>
concept KernelRule = Memory<M> && detail::KernelScalar<typename M::Scalar> &&
    requires(const M& m, StateOf<M>& s, const WriteToken<M>& input, const ReadToken<M>& query) {
  { M::decay_kind } -> std::convertible_to<detail::DecayKind>;
  { M::has_delta_term } -> std::convertible_to<bool>;
  m.coefficients(s, input, query);
  s.W.colStride();
};

namespace detail {

// The same carrier with another scalar.
template <class C, class T> struct CarrierOf { using type = C; };
template <class S, class T> struct CarrierOf<Owned<S>, T> { using type = Owned<T>; };

// The normaliser of a rule's state; empty for rules without a normaliser.
template <class OwnedState> struct NormaliserOf { using type = NoNormaliser::State<Extents, 1>; };
template <class OwnedState>
requires requires(OwnedState& s) { s.normaliser; }
struct NormaliserOf<OwnedState> {
  using type = decltype(OwnedState::normaliser);
};

// The rounding errors of a compensated W; empty for rules without them.
template <class OwnedState> struct SumOf { using type = PlainSum::State<Extents, 1, 1>; };
template <class OwnedState>
requires requires(OwnedState& s) { s.sum; }
struct SumOf<OwnedState> {
  using type = decltype(OwnedState::sum);
};

template <class M>
inline constexpr auto deferred_name = [] {
  constexpr std::string_view prefix = "Deferred ";
  std::array<char, prefix.size() + M::name.size()> text{};
  std::copy(M::name.begin(), M::name.end(), std::copy(prefix.begin(), prefix.end(), text.begin()));
  return text;
}();

}  // namespace detail

/// A rule that applies its writes to the matrix W only once in N tokens. Until this flush, pending
/// writes are stored as keys k_i and updates u_i. P is the product of all decays since the last
/// flush, and c_i the product of all decays since token i:
///
///     W̄ x = W P x + Σ_i c_i u_i (k_i·x)
///     u_t = β_t ∘ (v_t − W̄ k_t)
///     y_t = W̄ q_t + u_t (k_t·q_t)
///     every N tokens: W ← W P + Σ_i c_i u_i k_iᵀ
///
/// Equal to M up to rounding; N = 1 writes W at every token. W may be stored as Eigen::bfloat16 or
/// Eigen::half, in half the memory of float; all other numbers are M's Scalar. W is rounded to
/// nearest only when it is written, so that a larger N has smaller errors. half has 3 bits more
/// than bfloat16, but no entries beyond 65504. For inference only: it has no backward, train M
/// instead.
///
/// Shapes: those of M; pending writes take N (d_v + d_k) numbers. Cost per token: the flops of M
/// and about 2 N (d_v + d_k), with one decay per key row N d_k more. `scan` uses M's kernel if W is
/// stored as M's Scalar, else it takes steps. Throws what M throws.
///
/// Measured errors, DeltaRule<float> with random unit-norm keys after 10⁵ tokens of d = 64: the
/// relative error of y in bfloat16 is 1.6e-2 with N = 1, 5.6e-3 with N = 8 and 4.0e-3 with N = 16;
/// in half 2.0e-3 with N = 1 and 7.0e-4 with N = 8. With AVX-512 and 8 heads of d = 128 (in the
/// second-level cache) a step takes 0.8 of M's time, 0.7 in 16 bits. half is slow without F16C.
template <KernelRule M, int N = 8, class Stored = typename M::Scalar> class Deferred {
 public:
  using Scalar = typename M::Scalar;
  using Signature = typename M::Signature;
  static constexpr std::string_view name{detail::deferred_name<M>.data(),
                                         detail::deferred_name<M>.size()};
  static_assert(N >= 1, "Deferred: W is written every N tokens, N at least 1");
  static_assert(std::is_same_v<Stored, float> || std::is_same_v<Stored, double> ||
                    std::is_same_v<Stored, Eigen::bfloat16> || std::is_same_v<Stored, Eigen::half>,
                "Deferred: W is stored as float, double, Eigen::bfloat16 or Eigen::half");

 private:
  using S = Scalar;
  using Matrix = decltype(StateOf<M>::W);
  static constexpr int Dv = Matrix::RowsAtCompileTime, Dk = Matrix::ColsAtCompileTime;
  static constexpr bool by_column = M::decay_kind == detail::DecayKind::per_channel;
  template <class C>
  using Normaliser = typename detail::NormaliserOf<typename M::template State<C>>::type;
  template <class C> using Sum = typename detail::SumOf<typename M::template State<C>>::type;

 public:
  template <class C> struct State {
    mat<typename detail::CarrierOf<C, Stored>::type, Dv, Dk> W;
    mat<C, Dk, N> keys;
    mat<C, Dv, N> updates;
    vec<C, by_column ? Dk : N + 1> decays;  ///< P of each column, or P and c_1 … c_N
    Sum<C> sum;
    Normaliser<C> normaliser;
    count<C> pending;
    static constexpr auto names =
        fw::names("W", "keys", "updates", "decays", "sum", "normaliser", "pending");
  };
  using OwnedState = State<Owned<S>>;

  explicit Deferred(M memory) : memory_(std::move(memory)) {}

  const M& memory() const { return memory_; }
  Signature signature() const { return memory_.signature(); }
  State<Extents> state_extents() const {
    const auto inner = memory_.state_extents();
    const MemberExtent W = inner.W;
    // The rule's own sizes, or none where it has no such member.
    const Sum<Extents> sum = [&] {
      if constexpr (requires { inner.sum; })
        return inner.sum;
      else
        return Sum<Extents>{};
    }();
    const Normaliser<Extents> normaliser = [&] {
      if constexpr (requires { inner.normaliser; })
        return inner.normaliser;
      else
        return Normaliser<Extents>{};
    }();
    return {W, {W.width, N}, {W.rows, N}, {by_column ? W.width : N + 1, 1}, sum, normaliser, {}};
  }
  std::array<CountRange, 1> count_ranges(const OwnedState& s) const {
    return {{{"pending", s.pending, 0, N - 1}}};
  }
  template <class T> auto cast() const {
    auto memory = memory_.template cast<T>();
    using To = std::conditional_t<std::is_same_v<Stored, S>, T, Stored>;
    return Deferred<decltype(memory), N, To>(std::move(memory));
  }

  Violation violation(const WriteToken<Deferred>& t) const requires StabilityCondition<M> {
    return memory_.violation(t);
  }
  void write(OwnedState& s, const WriteToken<Deferred>& t) const {
    write_token<false>(s, t, {t.key}, nullptr);  // the key is a placeholder for the unused query
  }
  void step(OwnedState& s, const WriteToken<Deferred>& t, const ReadToken<Deferred>& query,
            OutToken<Deferred> out) const {
    write_token<true>(s, t, query, out.output.data());
  }
  void read(const OwnedState& s, const ReadToken<Deferred>& t, OutToken<Deferred> y) const {
    detail::DeferredToken<S> token;
    token.output = y.output.data();
    if constexpr (requires { memory_.read_scale(s, t); })
      token.coefficients.read_scale = memory_.read_scale(s, t);
    const Index count = s.pending;
    const auto w = pending_writes(s, count, count > 0);
    with_products(s, w, count, t.query, t.query, token,
                  [&] { detail::deferred_read(detail::stored_matrix(s.W), token, w); });
  }
  void scan(OwnedState& s, const WriteSequence<Deferred>& inputs,
            const ReadSequence<Deferred>& queries, OutSequence<Deferred> out) const {
    const Index steps = inputs.key.cols();
    Index t = 0;
    if (std::is_same_v<Stored, S>) {
      const Index lead = std::min(steps, (N - s.pending) % N), whole = (steps - lead) / N * N;
      step_range(s, inputs, queries, out, 0, lead);
      if (whole > 0) scan_blocks(s, inputs, queries, out, lead, whole);
      t = lead + whole;
    }
    step_range(s, inputs, queries, out, t, steps);
  }
  /// Applies all pending writes to W, as happens every N tokens. Throws std::invalid_argument for a
  /// state of another memory.
  void flush(OwnedState& s) const {
    check_state(*this, s);
    const Index count = s.pending;
    if (count == 0) return;
    decay_updates(s, count);
    detail::deferred_flush(detail::stored_matrix(s.W), pending_writes(s, count, true));
    clear_pending(s);
  }

 private:
  // `has_decayed`: whether W has decayed since it was written; it has not if there are no pending
  // writes.
  template <class AnyState>
  static detail::PendingWrites<S> pending_writes(AnyState& s, Index count, bool has_decayed) {
    detail::PendingWrites<S> w{detail::columns_of(s.keys), detail::columns_of(s.updates), count,
                               S(1), nullptr};
    if constexpr (!std::is_const_v<AnyState>) w.errors = detail::rounding_errors_of<S>(s);
    if constexpr (by_column)
      w.decays = has_decayed ? s.decays.data() : nullptr;
    else if (has_decayed)
      w.decay = s.decays[0];
    return w;
  }

  // Applies the decay of a token to P and to the `count` pending writes.
  static void apply_decay(OwnedState& s, Index count,
                          [[maybe_unused]] const WriteToken<Deferred>& t,
                          [[maybe_unused]] S decay) {
    if (count == 0) s.decays.setOnes();
    if constexpr (by_column) {
      s.decays.array() *= t.decay.array();
      for (Index i = 0; i < count; ++i) s.keys.col(i).array() *= t.decay.array();
    } else {
      for (Index i = 0; i <= count; ++i) s.decays[i] *= decay;
    }
  }
  // Multiplies pending updates by c_i. With one decay per column the keys have decayed already.
  static void decay_updates([[maybe_unused]] OwnedState& s, [[maybe_unused]] Index count) {
    if constexpr (!by_column)
      for (Index i = 0; i < count; ++i) {
        if (s.decays[i + 1] != S(1)) s.updates.col(i) *= s.decays[i + 1];
        s.decays[i + 1] = S(1);
      }
  }
  static void clear_pending(OwnedState& s) {
    s.keys.setZero();
    s.updates.setZero();
    s.decays.setZero();
    s.pending = 0;
  }

  template <bool Reads>
  void write_token(OwnedState& s, const WriteToken<Deferred>& t, const ReadToken<Deferred>& query,
                   S* output) const {
    detail::DeferredToken<S> token;
    token.coefficients = memory_.coefficients(s, t, query);
    token.value = t.value.data();
    if constexpr (requires { t.beta.data(); }) token.betas = t.beta.data();
    token.output = output;
    const Index count = s.pending;
    token.flush = count + 1 == N;
    apply_decay(s, count, t, token.coefficients.decay);
    if (token.flush) decay_updates(s, count);
    s.keys.col(count) = t.key;
    const auto w = pending_writes(s, count, true);
    with_products(s, w, count + 1, t.key, query.query, token, [&] {
      detail::deferred_step<M::has_delta_term, Reads>(detail::stored_matrix(s.W), token, w);
    });
    if (token.flush)
      clear_pending(s);
    else
      s.pending = count + 1;
  }

  // Completes the token with the products of key and query with the first `keys` pending keys, and
  // with the decayed key and query for W. Then calls f.
  template <class K, class F>
  static void with_products(const OwnedState& s, const detail::PendingWrites<S>& w, Index keys,
                            const K& key, const K& query, detail::DeferredToken<S>& token,
                            const F& f) {
    // One more than N, because products are computed in pairs.
    S key_products[N + 1], query_products[N + 1];
    detail::products_of_keys(w.keys, keys, key.data(), query.data(), key.size(), key_products,
                             query_products);
    if constexpr (!by_column)
      for (Index i = 0; i < keys; ++i) {
        key_products[i] *= s.decays[i + 1];
        query_products[i] *= s.decays[i + 1];
      }
    token.key_products = key_products;
    token.query_products = query_products;
    token.lookup_key = key.data();
    token.query = query.data();
    if (w.decays == nullptr) return f();
    if constexpr (by_column)
      scratch<S, Dk, 2>(key.size(), [&](auto& lookup_key, auto& decayed_query) {
        lookup_key = s.decays.cwiseProduct(key);
        decayed_query = s.decays.cwiseProduct(query);
        token.lookup_key = lookup_key.data();
        token.query = decayed_query.data();
        f();
      });
  }

  void step_range(OwnedState& s, const WriteSequence<Deferred>& inputs,
                  const ReadSequence<Deferred>& queries, const OutSequence<Deferred>& out,
                  Index first, Index end) const {
    const Signature sizes = signature();
    for (Index t = first; t < end; ++t)
      step(s, detail::token_at<WriteToken<Deferred>>(inputs, sizes.write(), t),
           detail::token_at<ReadToken<Deferred>>(queries, sizes.read(), t),
           detail::token_at<OutToken<Deferred>>(out, sizes.out(), t));
  }
  // Scans a multiple of N tokens. There must be no pending writes.
  void scan_blocks([[maybe_unused]] OwnedState& s,
                   [[maybe_unused]] const WriteSequence<Deferred>& inputs,
                   [[maybe_unused]] const ReadSequence<Deferred>& queries,
                   const OutSequence<Deferred>& out, Index first, Index count) const {
    const Signature sizes = signature();
    [[maybe_unused]] auto outputs = detail::steps(out, sizes.out(), first, count);
    if constexpr (std::is_same_v<Stored, S>)
      detail::scan_by_kernel(memory_, s, detail::steps(inputs, sizes.write(), first, count),
                             detail::steps(queries, sizes.read(), first, count), outputs);
  }

  M memory_;
};

}  // namespace fw
