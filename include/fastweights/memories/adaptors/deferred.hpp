#pragma once

#include <algorithm>
#include <array>
#include <fastweights/core/check.hpp>
#include <fastweights/kernels/decode/deferred.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/memories/rules/normaliser.hpp>

namespace fw {

/// A rule that the kernels serve: DeltaRule, GatedDeltaRule, LinearAttention, GatedLinearAttention,
/// HebbianMemory, and one of your own that has what kernels/rule.hpp asks for.
template <class M>
concept KernelRule = Memory<M> && detail::KernelScalar<typename M::Scalar> &&
    requires(const M& m, StateOf<M>& s, const WriteToken<M>& w, const ReadToken<M>& r) {
  { M::decay_kind } -> std::convertible_to<detail::DecayKind>;
  { M::has_delta_term } -> std::convertible_to<bool>;
  m.coefficients(s, w, r);
  s.W.colStride();
};

namespace detail {

// The same carrier, of another scalar.
template <class C, class T> struct CarrierOf { using type = C; };
template <class S, class T> struct CarrierOf<Owned<S>, T> { using type = Owned<T>; };

// What a rule keeps beside W: a normaliser or nothing.
template <class OwnedState> struct NormaliserOf { using type = NoNormaliser::State<Extents, 1>; };
template <class OwnedState>
requires requires(OwnedState& s) { s.normaliser; }
struct NormaliserOf<OwnedState> {
  using type = decltype(OwnedState::normaliser);
};

template <class M>
inline constexpr auto deferred_name = [] {
  constexpr std::string_view before = "Deferred ";
  std::array<char, before.size() + M::name.size()> text{};
  std::copy(M::name.begin(), M::name.end(), std::copy(before.begin(), before.end(), text.begin()));
  return text;
}();

}  // namespace detail

/// A rule whose matrix W is rewritten once in N tokens: what the last tokens wrote waits beside it,
/// as keys k_i and updates e_i, and a step reads W once. With what has faded since W was written
/// before, P, and since token i, c_i:
///
///     W̄ x = W P x + Σ_i c_i e_i (k_i·x)
///     e_t = β_t ∘ (v_t − W̄ k_t)
///     y_t = W̄ q_t + e_t (k_t·q_t)
///     every N tokens: W ← W P + Σ_i c_i e_i k_iᵀ
///
/// The same function as M, of the same inputs, up to rounding; N = 1 writes with every token. W may
/// be kept as Eigen::bfloat16 or Eigen::half, in half the room of float: all else is M's Scalar,
/// and W is rounded, to nearest, only when it is written, so that a larger N loses less. half has 3
/// bits more than bfloat16, but no entries beyond 65504. For inference: no backward, train M.
///
/// Shapes: those of M; what waits takes N (d_v + d_k) numbers. Cost a token: the flops of M and
/// about 2 N (d_v + d_k), with one decay a key row N d_k more. `scan` runs by M's kernel where W is
/// kept as it is computed, else by steps. Throws what M throws.
///
/// Measured, DeltaRule<float> with random keys of length 1: after 10⁵ tokens of d = 64, y is off by
/// 1.6e-2 of its size in bfloat16 with N = 1, 5.6e-3 with N = 8 and 4.0e-3 with N = 16, in half by
/// 2.0e-3 and 7.0e-4 with N = 1 and 8. With AVX-512 and 8 heads of d = 128 (in the second-level
/// cache) a step takes 0.8 of M's time, 0.7 in 16 bits. Halves are slow without F16C.
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
  static constexpr bool by_column = M::decay_kind == detail::DecayKind::per_key;
  template <class C>
  using Normaliser = typename detail::NormaliserOf<typename M::template State<C>>::type;

 public:
  template <class C> struct State {
    mat<typename detail::CarrierOf<C, Stored>::type, Dv, Dk> W;
    mat<C, Dk, N> keys;
    mat<C, Dv, N> updates;
    vec<C, by_column ? Dk : N + 1> fades;  ///< P of the columns, or P and c_1 … c_N
    Normaliser<C> normaliser;
    count<C> waiting;
    static constexpr auto names =
        fw::names("W", "keys", "updates", "fades", "normaliser", "waiting");
  };
  using OwnedState = State<Owned<S>>;

  explicit Deferred(M memory) : memory_(std::move(memory)) {}

  const M& memory() const { return memory_; }
  Signature signature() const { return memory_.signature(); }
  State<Extents> state_extents() const {
    const auto inner = memory_.state_extents();
    const Extent W = inner.W;
    State<Extents> extents{W, {W.width, N}, {W.rows, N}, {by_column ? W.width : N + 1, 1}, {}, {}};
    if constexpr (requires { inner.normaliser; }) extents.normaliser = inner.normaliser;
    return extents;
  }
  template <class T> auto cast() const {
    auto memory = memory_.template cast<T>();
    using To = std::conditional_t<std::is_same_v<Stored, S>, T, Stored>;
    return Deferred<decltype(memory), N, To>(std::move(memory));
  }

  void write(OwnedState& s, const WriteToken<Deferred>& t) const {
    take<false>(s, t, {t.key}, nullptr);  // the key stands for a query, which nobody asks
  }
  void step(OwnedState& s, const WriteToken<Deferred>& t, const ReadToken<Deferred>& reads,
            OutToken<Deferred> out) const {
    take<true>(s, t, reads, out.output.data());
  }
  void read(const OwnedState& s, const ReadToken<Deferred>& t, OutToken<Deferred> y) const {
    detail::DeferredToken<S> token;
    token.output = y.output.data();
    if constexpr (requires { memory_.read_weight(s, t); })
      token.by.read = memory_.read_weight(s, t);
    const Index count = count_of(s);
    const auto w = waiting(s, count, count > 0);
    meet(s, w, count, t.query, t.query, token,
         [&] { detail::deferred_read(detail::stored_matrix(s.W), token, w); });
  }
  void scan(OwnedState& s, const WriteSequence<Deferred>& in, const ReadSequence<Deferred>& reads,
            OutSequence<Deferred> out) const {
    const Index steps = in.key.cols();
    Index t = 0;
    if (std::is_same_v<Stored, S>) {
      const Index lead = std::min(steps, (N - count_of(s)) % N), whole = (steps - lead) / N * N;
      step_through(s, in, reads, out, 0, lead);
      if (whole > 0) scan_whole(s, in, reads, out, lead, whole);
      t = lead + whole;
    }
    step_through(s, in, reads, out, t, steps);
  }
  /// W takes in all that waits, as it does every N tokens.
  void flush(OwnedState& s) const {
    const Index count = count_of(s);
    if (count == 0) return;
    let_updates_fade(s, count);
    detail::deferred_flush(detail::stored_matrix(s.W), waiting(s, count, true));
    forget(s);
  }

 private:
  // What comes from a file may be any number.
  static Index count_of(const OwnedState& s) { return std::clamp<Index>(s.waiting, 0, N - 1); }

  // `fades`: whether s.fades says how W has faded; when nothing waits, W is as it was written.
  static detail::Waiting<S> waiting(const OwnedState& s, Index count, bool fades) {
    detail::Waiting<S> w{detail::columns_of(s.keys), detail::columns_of(s.updates), count, S(1),
                         nullptr};
    if constexpr (by_column)
      w.fades = fades ? s.fades.data() : nullptr;
    else if (fades)
      w.fade = s.fades[0];
    return w;
  }

  // Lets the past fade, of which `count` updates wait.
  static void fade(OwnedState& s, Index count, [[maybe_unused]] const WriteToken<Deferred>& t,
                   [[maybe_unused]] S by) {
    if (count == 0) s.fades.setOnes();
    if constexpr (by_column) {
      s.fades.array() *= t.decay.array();
      for (Index i = 0; i < count; ++i) s.keys.col(i).array() *= t.decay.array();
    } else {
      for (Index i = 0; i <= count; ++i) s.fades[i] *= by;
    }
  }
  // Of numbers c_i the last is left to multiply by; of columns, keys have faded already.
  static void let_updates_fade([[maybe_unused]] OwnedState& s, [[maybe_unused]] Index count) {
    if constexpr (!by_column)
      for (Index i = 0; i < count; ++i) {
        if (s.fades[i + 1] != S(1)) s.updates.col(i) *= s.fades[i + 1];
        s.fades[i + 1] = S(1);
      }
  }
  static void forget(OwnedState& s) {
    s.keys.setZero();
    s.updates.setZero();
    s.fades.setZero();
    s.waiting = 0;
  }

  template <bool Answers>
  void take(OwnedState& s, const WriteToken<Deferred>& t, const ReadToken<Deferred>& reads,
            S* output) const {
    detail::DeferredToken<S> token;
    token.by = memory_.coefficients(s, t, reads);
    token.values = t.value.data();
    if constexpr (requires { t.beta.data(); }) token.betas = t.beta.data();
    token.output = output;
    const Index count = count_of(s);
    token.flushes = count + 1 == N;
    fade(s, count, t, token.by.fade);
    if (token.flushes) let_updates_fade(s, count);
    s.keys.col(count) = t.key;
    const auto w = waiting(s, count, true);
    meet(s, w, count + 1, t.key, reads.query, token, [&] {
      detail::deferred_step<M::has_delta_term, Answers>(detail::stored_matrix(s.W), token, w);
    });
    if (token.flushes)
      forget(s);
    else
      s.waiting = count + 1;
  }

  // Completes the token by what key and query have in common with the first `keys` that wait, and
  // by what they see of W; calls f.
  template <class K, class F>
  static void meet(const OwnedState& s, const detail::Waiting<S>& w, Index keys, const K& key,
                   const K& query, detail::DeferredToken<S>& token, const F& f) {
    S of_lookup[N + 1], of_answer[N + 1];  // one more than there are: they are made in pairs
    detail::products_of_keys(w.keys, keys, key.data(), query.data(), key.size(), of_lookup,
                             of_answer);
    if constexpr (!by_column)
      for (Index i = 0; i < keys; ++i) {
        of_lookup[i] *= s.fades[i + 1];
        of_answer[i] *= s.fades[i + 1];
      }
    token.of_lookup = of_lookup;
    token.of_answer = of_answer;
    token.lookup_key = key.data();
    token.query = query.data();
    if (w.fades == nullptr) return f();
    if constexpr (by_column)
      scratch<S, Dk, 2>(key.size(), [&](auto& lookup_key, auto& faded) {
        lookup_key = s.fades.cwiseProduct(key);
        faded = s.fades.cwiseProduct(query);
        token.lookup_key = lookup_key.data();
        token.query = faded.data();
        f();
      });
  }

  void step_through(OwnedState& s, const WriteSequence<Deferred>& in,
                    const ReadSequence<Deferred>& reads, const OutSequence<Deferred>& out,
                    Index first, Index end) const {
    const Signature sizes = signature();
    for (Index t = first; t < end; ++t)
      step(s, detail::token_at<WriteToken<Deferred>>(in, sizes.write(), t),
           detail::token_at<ReadToken<Deferred>>(reads, sizes.read(), t),
           detail::token_at<OutToken<Deferred>>(out, sizes.out(), t));
  }
  // Of tokens before which nothing waits, and N of which make a whole.
  void scan_whole([[maybe_unused]] OwnedState& s,
                  [[maybe_unused]] const WriteSequence<Deferred>& in,
                  [[maybe_unused]] const ReadSequence<Deferred>& reads,
                  const OutSequence<Deferred>& out, Index first, Index count) const {
    const Signature sizes = signature();
    [[maybe_unused]] auto outputs = detail::steps(out, sizes.out(), first, count);
    if constexpr (std::is_same_v<Stored, S>)
      detail::scan_by_kernel(memory_, s, detail::steps(in, sizes.write(), first, count),
                             detail::steps(reads, sizes.read(), first, count), outputs);
  }

  M memory_;
};

}  // namespace fw
