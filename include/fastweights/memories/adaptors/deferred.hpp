#pragma once

#include <algorithm>
#include <array>
#include <fastweights/core/check.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/kernels/decode/eight_bits.hpp>
#include <fastweights/kernels/decode/pending_decays.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/memories/rules/normaliser.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// The member storage with another scalar.
template <class C, class T> struct StorageOf { using type = C; };
template <class S, class T> struct StorageOf<Owned<S>, T> { using type = Owned<T>; };

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

// The numbers of a normaliser before each of some tokens, a column a token.
template <class C, int Tokens> struct PastNormalisers {
  mat<C, Dynamic, Tokens> before;
  static constexpr auto names = fw::names("before");
};

// Calls f(vector of a normaliser, its part of a column of `before`) for all its vectors.
template <class Normaliser, class Column, class F>
void with_numbers(Normaliser& normaliser, Column column, const F& f) {
  Index at = 0;
  for_each_leaf(
      [&](auto& numbers) {
        f(numbers, column.segment(at, numbers.size()));
        at += numbers.size();
      },
      normaliser);
}

// Parts of a W in 8 bits: see kernels/decode/eight_bits.hpp.
template <class C, int Dv, int Dk> struct EightBitParts {
  vec<C, Dv> scales;
  mat<typename StorageOf<C, std::int8_t>::type, Dv, Dk == Dynamic ? Dynamic : (Dk + 1) / 2>
      remainders;
  static constexpr auto names = fw::names("scales", "remainders");
};

// True if Deferred has all members of a rule's state.
template <class M> constexpr bool has_plain_state() {
  for (const std::string_view name : M::template State<Extents>::names)
    if (name != "W" && name != "sum" && name != "normaliser") return false;
  return true;
}

template <class M>
inline constexpr auto deferred_name = [] {
  constexpr std::string_view prefix = "Deferred ";
  std::array<char, prefix.size() + M::name.size()> text{};
  std::copy(M::name.begin(), M::name.end(), std::copy(prefix.begin(), prefix.end(), text.begin()));
  return text;
}();

}  // namespace detail

/// A rule that the kernels run, that writes before it reads and has no state but W, its rounding
/// errors and a normaliser: DeltaRule, GatedDeltaRule, LinearAttention, GatedLinearAttention,
/// HebbianMemory, Comba, GatedDeltaRule2, GatedDeltaProduct, LowRankRule, Longhorn in its exact
/// form, NormalisedGatedAttention, and your own rules with the members listed in kernels/rule.hpp.
template <class M>
concept Deferrable = KernelRule<M> && !reads_first<M>() && detail::has_plain_state<M>();

//| `Deferred<M, N, Stored, R>` | a rule with kernels and no state but W and a normaliser; W is
//|   updated once in N tokens, P and c_i are decays | y = W P q + Σ c_i u_i (k_i·q) | as M, and
//|   2 n² (N + 2R) (d_v + d_k) for n writes a token |  | the rule's
/// A rule that applies its writes to the matrix W only once in N tokens. Until this flush, pending
/// writes are stored as keys k_i and updates u_i, one or more per token. P is the product of all
/// decays since the last flush, and c_i the product of all decays since token i:
///
///     W̄ x = W P x + Σ_i c_i u_i (k_i·x)
///     u_t = β_t ∘ (v_t − W̄ a_t), with the look-up key a, k in most rules
///     y_t = W̄ q_t + u_t (k_t·q_t)
///     every N tokens: W ← W P + Σ_i c_i u_i k_iᵀ
///
/// Equal to M up to rounding; N = 1 writes W at every token. W may be stored as Eigen::bfloat16 or
/// Eigen::half, in half the memory of float; all other numbers are M's Scalar. W is rounded to
/// nearest only when it is written, so that a larger N has smaller errors. half has 3 bits more
/// than bfloat16, but no entries beyond 65504. With std::int8_t, W has 8 bits and one scale per
/// row, and 4 bits more in `remainders` for what they round off: 3/8 of float's memory. This is not
/// for rules with a CompensatedSum, whose rounding errors alone are a matrix in float. For
/// inference only: it has no backward, train M instead.
///
/// With R > 0 the last R tokens can be rolled back at any time: see fw::roll_back. When N + R
/// tokens are pending, the next token first writes the oldest N to W.
///
/// Shapes: those of M; pending writes take n (N + R) (d_v + d_k) numbers for n writes per token,
/// with R > 0 and one decay per key row d_k more each, and with R > 0 and a normaliser 2 (N + R)
/// d_k. Cost per token: the flops of M and about 2 n² (N + 2R) (d_v + d_k), with one decay per key
/// row n (N + 2R) d_k more. `scan` uses M's kernel if W is stored as M's Scalar, else it takes
/// steps. Throws what M throws.
///
/// Measured errors, DeltaRule<float> with random unit-norm keys after 10⁵ tokens of d = 64: the
/// relative error of y in bfloat16 is 1.6e-2 with N = 1, 5.6e-3 with N = 8 and 4.0e-3 with N = 16;
/// in half 2.0e-3 with N = 1 and 7.0e-4 with N = 8. With AVX-512 and 8 heads of d = 128 (in the
/// second-level cache) a step takes 0.8 of M's time, 0.7 in 16 bits. half is slow without F16C.
template <Deferrable M, int N = 8, class Stored = typename M::Scalar, int R = 0> class Deferred {
 public:
  using Scalar = typename M::Scalar;
  using Signature = typename M::Signature;
  static constexpr std::string_view name{detail::deferred_name<M>.data(),
                                         detail::deferred_name<M>.size()};
  static_assert(N >= 1, "Deferred: W is written every N tokens, N at least 1");
  static_assert(R >= 0, "Deferred: R tokens can be rolled back, R at least 0");
  static_assert(
      std::is_same_v<Stored, float> || std::is_same_v<Stored, double> ||
          std::is_same_v<Stored, Eigen::bfloat16> || std::is_same_v<Stored, Eigen::half> ||
          std::is_same_v<Stored, std::int8_t>,
      "Deferred: W is stored as float, double, Eigen::bfloat16, Eigen::half or std::int8_t");
  static_assert(
      !std::is_same_v<Stored, std::int8_t> ||
          member_count<typename detail::SumOf<typename M::template State<Extents>>::type> == 0,
      "Deferred: std::int8_t is for rules without compensated sums; give the rule PlainSum");

 private:
  using S = Scalar;
  using Matrix = decltype(StateOf<M>::W);
  static constexpr int Dv = Matrix::RowsAtCompileTime, Dk = Matrix::ColsAtCompileTime;
  static constexpr bool by_column = M::decay_kind == detail::DecayKind::per_channel;
  static constexpr bool lookup_before_decay = detail::order_of<M>().lookup_before_decay;
  static constexpr int per_token = static_cast<int>(detail::corrections_per_token<M>());
  static constexpr int most = (N + R) * per_token;  // pending writes
  static constexpr bool undoes = R > 0;
  static constexpr bool eight_bits = std::is_same_v<Stored, std::int8_t>;
  static constexpr bool last_looks_up =
      M::has_delta_term && detail::products_of<M>() != detail::Products::removal;
  template <class C>
  using Normaliser = typename detail::NormaliserOf<typename M::template State<C>>::type;
  template <class C> using Sum = typename detail::SumOf<typename M::template State<C>>::type;
  template <class C>
  using Parts =
      std::conditional_t<eight_bits, detail::EightBitParts<C, Dv, Dk>, NoNormaliser::State<C, 1>>;
  static constexpr bool keeps_normaliser = undoes && member_count<Normaliser<Extents>> > 0;
  template <class C>
  using Past = std::conditional_t<keeps_normaliser, detail::PastNormalisers<C, N + R>,
                                  NoNormaliser::State<C, 1>>;

 public:
  template <class C> struct State {
    /// Tokens that can be rolled back, and updates per token.
    static constexpr Index undoable = R, writes_per_token = per_token;
    mat<typename detail::StorageOf<C, Stored>::type, Dv, Dk> W;
    mat<C, Dk, most> keys;     ///< the keys of the pending updates
    mat<C, Dv, most> updates;  ///< the pending updates u_i
    /// R = 0: P of each column, or P and c_1, c_2, …. R > 0: the decay of every pending write.
    std::conditional_t<undoes, mat<C, by_column ? Dk : 1, most>, vec<C, by_column ? Dk : most + 1>>
        decays;
    Sum<C> sum;
    Normaliser<C> normaliser;
    Past<C> past;      ///< the normaliser before every pending token
    Parts<C> parts;    ///< the scales of a W in 8 bits, and what it rounds off
    count<C> pending;  ///< tokens whose updates are not in W yet
    static constexpr auto names = fw::names("W", "keys", "updates", "decays", "sum", "normaliser",
                                            "past", "parts", "pending");
  };
  using OwnedState = State<Owned<S>>;

  /// Defers the writes of this memory.
  explicit Deferred(M memory) : memory_(std::move(memory)) {}

  /// The memory whose writes are deferred.
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
    const MemberExtent decays{by_column ? W.width : undoes ? 1 : most + 1, undoes ? most : 1};
    const Parts<Extents> parts = [&] {
      if constexpr (eight_bits)
        return Parts<Extents>{{W.rows, 1}, {W.rows, (W.width + 1) / 2}};
      else
        return Parts<Extents>{};
    }();
    return {W,          {W.width, most},          {W.rows, most}, decays, sum,
            normaliser, past_extents(normaliser), parts,          {}};
  }
  std::array<CountRange, 1> count_ranges(const OwnedState& s) const {
    return {{{"pending", s.pending, 0, undoes ? most : most - 1}}};
  }
  template <class T> auto cast() const {
    auto memory = memory_.template cast<T>();
    using To = std::conditional_t<std::is_same_v<Stored, S>, T, Stored>;
    return Deferred<decltype(memory), N, To, R>(std::move(memory));
  }

  static constexpr bool key_bounds_strength = fw::key_bounds_strength<M>();
  Violation violation(const WriteToken<Deferred>& t) const requires StabilityCondition<M> {
    return memory_.violation(t);
  }
  void write(OwnedState& s, const WriteToken<Deferred>& t) const {
    const ReadToken<Deferred> unused{t.key.col(0)};
    write_token<false>(s, t, unused, nullptr);
  }
  void step(OwnedState& s, const WriteToken<Deferred>& t, const ReadToken<Deferred>& query,
            OutToken<Deferred> out) const {
    write_token<true>(s, t, query, detail::columns_of(out.output).data);
  }
  void read(const OwnedState& s, const ReadToken<Deferred>& t, OutToken<Deferred> y) const {
    detail::DeferredToken<S> token;
    token.output = y.output.data();
    if constexpr (requires { memory_.read_scale(s, t); })
      token.coefficients.read_scale = memory_.read_scale(s, t);
    const Index count = s.pending;
    const auto w = pending_writes(s, count, count > 0);
    with_products(s, w, count, t.query.data(), t.query.data(), token, [&](const auto& decayed) {
      detail::deferred_read(detail::stored_matrix(s.W), token, decayed);
    });
  }
  void scan(OwnedState& s, const WriteSequence<Deferred>& inputs,
            const ReadSequence<Deferred>& queries, OutSequence<Deferred> out) const {
    const Index steps = queries.query.cols();
    Index t = 0;
    if (std::is_same_v<Stored, S> && s.pending % per_token == 0) {
      const Index held = s.pending / per_token;
      const Index lead = undoes ? 0 : std::min(steps, (N - held) % N);
      const Index whole = undoes ? std::max<Index>(0, written_by_steps(held + steps) - held)
                                 : (steps - lead) / N * N;
      step_range(s, inputs, queries, out, 0, lead);
      if (undoes && whole > 0) flush(s);
      if (whole > 0) scan_blocks(s, inputs, queries, out, lead, whole);
      t = lead + whole;
    }
    step_range(s, inputs, queries, out, t, steps);
  }
  /// Applies all pending writes to W, as happens every N tokens; none can be rolled back then.
  /// Throws std::invalid_argument for a state of another memory.
  void flush(OwnedState& s) const {
    check_state(*this, s);
    flush_oldest(s, s.pending);
  }

 private:
  // `has_decayed`: whether W has decayed since it was written; it has not if there are no pending
  // writes.
  template <class StateLike>
  static detail::PendingWrites<S> pending_writes(StateLike& s, Index count, bool has_decayed) {
    detail::PendingWrites<S> w{detail::columns_of(s.keys), detail::columns_of(s.updates), count,
                               S(1), nullptr};
    if constexpr (!std::is_const_v<StateLike>) w.errors = detail::rounding_errors_of<S>(s);
    if constexpr (eight_bits) w.scales = s.parts.scales.data();
    if constexpr (undoes) return w;  // with_products computes the decays
    if constexpr (by_column)
      w.decays = has_decayed ? s.decays.data() : nullptr;
    else if (has_decayed)
      w.decay = s.decays(0, 0);
    return w;
  }

  // Applies the decay of a token to P and to the `count` pending writes.
  static void apply_decay(OwnedState& s, Index count, const detail::Correction<S>& c) {
    if constexpr (undoes) {
      if (by_column && c.decays != nullptr)
        s.decays.col(count) =
            Eigen::Map<const Eigen::Matrix<S, Dynamic, 1>>(c.decays, s.keys.rows());
      else
        s.decays.col(count).setConstant(by_column ? S(1) : c.coefficients.decay);
    } else if constexpr (by_column) {
      if (c.decays == nullptr) return;
      const Eigen::Map<const Eigen::Array<S, Dk, 1>> decays(c.decays, s.keys.rows());
      s.decays.array() *= decays;
      for (Index i = 0; i < count; ++i) s.keys.col(i).array() *= decays;
    } else {
      for (Index i = 0; i <= count; ++i) s.decays[i] *= c.coefficients.decay;
    }
  }
  // Multiplies pending keys by c_i. With one decay per column they have decayed already.
  static void decay_keys([[maybe_unused]] OwnedState& s, [[maybe_unused]] Index count) {
    if constexpr (!by_column)
      for (Index i = 0; i < count; ++i) {
        if (s.decays[i + 1] != S(1)) s.keys.col(i) *= s.decays[i + 1];
        s.decays[i + 1] = S(1);
      }
  }
  // W as a flush takes it.
  static auto whole_matrix(OwnedState& s) {
    if constexpr (eight_bits)
      return detail::EightBitMatrix<S>{
          s.W.data(), s.parts.remainders.data(), s.parts.scales.data(), s.W.colStride(), s.W.rows(),
          s.W.cols()};
    else
      return detail::stored_matrix(s.W);
  }
  // The first `count` pending writes.
  static void flush_oldest(OwnedState& s, Index count) {
    if (count == 0) return;
    auto w = pending_writes(s, count, true);
    if constexpr (undoes) {
      scratch<S, by_column ? Dk : 1>(s.decays.rows(), [&](auto& all) {
        detail::decay_kept_keys(s.keys, s.decays, count, all);
        if constexpr (by_column)
          w.decays = all.data();
        else
          w.decay = all[0];
        detail::deferred_flush(whole_matrix(s), w);
      });
      const Index rest = s.pending - count;
      detail::move_to_front(s.keys, count, rest);
      detail::move_to_front(s.updates, count, rest);
      detail::move_to_front(s.decays, count, rest);
      if constexpr (keeps_normaliser)
        detail::move_to_front(s.past.before, count / per_token, rest / per_token);
      s.pending = rest;
    } else {
      decay_keys(s, count);
      detail::deferred_flush(whole_matrix(s), w);
      clear_pending(s);
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
    if constexpr (undoes) {
      if (s.pending + per_token > most) flush_oldest(s, std::min<Index>(N * per_token, s.pending));
      keep_normaliser(s);
    }
    detail::with_correction_buffer<M>(s.W, [&](S* buffer) {
      for (Index j = 0; j < per_token; ++j) {
        const auto c = detail::correction_of(memory_, s, t, query, output, j, buffer);
        if (j < per_token - 1)
          write_correction<false, M::has_delta_term>(s, c);
        else
          write_correction<Reads, last_looks_up>(s, c);
      }
    });
  }

  template <bool Reads, bool LooksUp>
  static void write_correction(OwnedState& s, const detail::Correction<S>& c) {
    detail::DeferredToken<S> token;
    token.coefficients = c.coefficients;
    token.value = c.value;
    token.betas = c.betas;
    token.output = c.output;
    const Index count = s.pending;
    const bool full = !undoes && count + 1 == most;
    token.flush = full && !eight_bits;
    if (!undoes && count == 0) s.decays.setOnes();
    const auto step = [&](const S* lookup, const S* products, S decay) {
      apply_decay(s, count, c);
      s.keys.col(count) = Eigen::Map<const Eigen::Matrix<S, Dk, 1>>(c.key, s.keys.rows());
      const auto w = pending_writes(s, count, true);
      with_products(s, w, count + 1, c.lookup, c.query, token, [&](const auto& decayed) {
        token.lookup_decay = products == nullptr ? decayed.decay : decay;
        if (products != nullptr) token.lookup_key = lookup, token.key_products = products;
        if (token.flush) decay_keys(s, count);
        detail::deferred_step<LooksUp, Reads>(detail::stored_matrix(s.W), token, decayed);
      });
    };
    if constexpr (LooksUp && lookup_before_decay)
      look_up_before_decay(s, count, c.lookup, step);
    else
      step(nullptr, nullptr, S(1));
    s.pending = count + 1;
    if (token.flush)
      clear_pending(s);
    else if (full)
      flush_oldest(s, most);
  }

  // Calls f(look-up key for W, products with the pending keys, decay of W), before a token's decay.
  template <class F>
  static void look_up_before_decay(const OwnedState& s, Index count, const S* lookup, const F& f) {
    detail::DeferredToken<S> token;
    const auto w = pending_writes(s, count, true);
    with_products(s, w, count, lookup, lookup, token, [&](const auto& decayed) {
      f(token.lookup_key, token.key_products, decayed.decay);
    });
  }

  // Completes the token with the products of key and query with the first `keys` pending keys, and
  // with the decayed key and query for W. Then calls f(pending writes with their decay).
  template <class F>
  static void with_products(const OwnedState& s, detail::PendingWrites<S> w, Index keys,
                            const S* key, const S* query, detail::DeferredToken<S>& token,
                            const F& f) {
    // One more than `most`, because products are computed in pairs.
    S key_products[most + 1], query_products[most + 1];
    const Index dk = s.keys.rows();
    token.key_products = key_products;
    token.query_products = query_products;
    token.lookup_key = key;
    token.query = query;
    if constexpr (undoes && by_column) {
      return with_copies(key, query, dk, token, [&](auto& k, auto& q) {
        detail::decayed_products(w.keys, detail::columns_of(s.decays), keys, k, q, key_products,
                                 query_products);
        f(w);
      });
    } else {
      detail::products_of_keys(w.keys, keys, key, query, dk, key_products, query_products);
      if constexpr (undoes) {
        w.decay = detail::decay_products(s.decays.data(), keys, key_products, query_products);
      } else if constexpr (!by_column) {
        for (Index i = 0; i < keys; ++i) {
          key_products[i] *= s.decays[i + 1];
          query_products[i] *= s.decays[i + 1];
        }
      }
      if (w.decays == nullptr) return f(w);
      with_copies(key, query, dk, token, [&](auto& k, auto& q) {
        const Eigen::Map<const Eigen::Matrix<S, Dk, 1>> decays(w.decays, dk);
        k = decays.cwiseProduct(k);
        q = decays.cwiseProduct(q);
        f(w);
      });
    }
  }
  // Calls f with copies of a token's look-up key and query.
  template <class F>
  static void with_copies(const S* key, const S* query, Index dk, detail::DeferredToken<S>& token,
                          const F& f) {
    scratch<S, Dk, 2>(dk, [&](auto& k, auto& q) {
      using Vector = Eigen::Map<const Eigen::Matrix<S, Dk, 1>>;
      k = Vector(key, dk);
      q = Vector(query, dk);
      token.lookup_key = k.data();
      token.query = q.data();
      f(k, q);
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
  // With R > 0: how many of `tokens` tokens steps would have written to W.
  static Index written_by_steps(Index tokens) { return std::max<Index>(0, tokens - R - 1) / N * N; }
  // Scans some tokens. There must be no pending writes.
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

  // Before a token: its column of `past` gets the numbers of the normaliser.
  static void keep_normaliser([[maybe_unused]] OwnedState& s) {
    if constexpr (keeps_normaliser)
      detail::with_numbers(s.normaliser, s.past.before.col(s.pending / per_token),
                           [](const auto& numbers, auto column) { column = numbers; });
  }
  static Past<Extents> past_extents([[maybe_unused]] Normaliser<Extents> normaliser) {
    if constexpr (keeps_normaliser) {
      Index numbers = 0;
      for_each_leaf([&](const MemberExtent& e) { numbers += e.rows * e.width; }, normaliser);
      return {{numbers, N + R}};
    } else {
      return {};
    }
  }

  M memory_;
};

/// Rolls back the last tokens of a Deferred memory with R > 0, as if they had never been. The next
/// steps give the same bits, or, if W has been written meanwhile, the same answers up to rounding.
/// Throws std::invalid_argument, and changes nothing, for more tokens than R, or than are pending:
/// a flush and an earlier roll back leave fewer.
template <class State>
requires(State::undoable > 0) void roll_back(State& s, Index tokens) {
  constexpr Index each = State::writes_per_token;
  if (s.pending < 0 || s.pending > s.keys.cols())
    detail::throw_invalid({"roll_back: pending is ", std::to_string(s.pending),
                           " in the state, expected 0 to ", std::to_string(s.keys.cols())});
  const Index limit = std::min<Index>(State::undoable, s.pending / each);
  if (tokens < 0 || tokens > limit)
    detail::throw_invalid(
        {"roll_back: ", std::to_string(tokens), " tokens, expected 0 to ", std::to_string(limit)});
  if (tokens == 0) return;
  s.pending -= tokens * each;
  if constexpr (requires { s.past.before; }) {
    const Index kept = s.pending / each;
    detail::with_numbers(s.normaliser, s.past.before.col(kept),
                         [](auto& numbers, const auto& column) { numbers = column; });
    detail::clear_behind(s.past.before, kept);
  }
  detail::clear_behind(s.keys, s.pending);
  detail::clear_behind(s.updates, s.pending);
  detail::clear_behind(s.decays, s.pending);
}

}  // namespace fw
