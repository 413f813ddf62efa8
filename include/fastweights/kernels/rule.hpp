#pragma once

#include <fastweights/core/check.hpp>
#include <fastweights/core/memory.hpp>
#include <fastweights/core/scratch.hpp>
#include <fastweights/kernels/decode/removal_step.hpp>
#include <fastweights/kernels/scan/scan.hpp>

/// \file
/// The kernels give a rule in float or double its step and its scan. The rule has a matrix W in its
/// state, and these members:
///
///     static constexpr DecayKind decay_kind;  // none, scalar, per_channel or compensated
///     static constexpr bool has_delta_term;   // whether a write subtracts the retrieved value
///     // With DecayKind::per_channel, `decay` has d_k numbers, one per column of W. A rule with
///     // one per row of W has a scan of its own (kernels/scan/row_scan.hpp).
///     // With DecayKind::compensated, the state has a matrix sum.errors besides W.
///     TokenCoefficients<S> coefficients(State&, const WriteToken&, const ReadToken&) const;
///
/// The kernels use the members `key`, `value`, `query` and `output` of the tokens, and `beta` and
/// `decay` if these have an entry per row. A rule whose keys or values differ from these, or with
/// several corrections per token, has instead of `coefficients`
///
///     void correction(State&, const WriteToken&, const ReadToken&, Index j, S* buffer,
///                     Correction<S>& c) const;   // completes correction j
///     static constexpr Index corrections;        // per token; 1 by default
///     static constexpr Index key_buffers, value_buffers;  // vectors it computes in `buffer`
///     static constexpr bool lookup_before_decay; // whether W is looked up before it decays
///     static constexpr Products products;        // if a pair needs less than all products
///     static constexpr bool row_strengths;       // whether c.betas has one β per value row
///
/// `c` has the token's key as all keys, its value, its decay per row if j = 0, and otherwise no
/// decay and β = 1. Change what differs: a β, or one decay per token, is in c.coefficients.
///
/// With `reads_first` the read sees W before the token, and bonus_key·q times the token's update.
/// The kernels call these functions for every correction in order. They must not use W, but may
/// update the other members of the state, and must accept any state type that has these members.
///
/// A rule that does more in a step or a scan has its own members `step` and `scan`, which may call
/// step_by_kernel and scan_by_kernel.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// True if a member of a token is a vector; otherwise it is one number.
template <class Member>
inline constexpr bool is_per_entry = requires(const std::remove_reference_t<Member>& m) {
  m.data();
};
/// True if a signature has one decay per token.
template <class Signature, class S>
inline constexpr bool one_decay = !is_per_entry<
    decltype(std::declval<typename Signature::template Write<Token<const S>>&>().decay)>;

template <class View> auto columns_of(const View& view) {
  using S = std::remove_reference_t<decltype(*std::declval<View&>().data())>;
  return Columns<S>{const_cast<S*>(view.data()), view.colStride()};
}

/// The rounding errors of a compensated W, `s.sum.errors`, or null.
template <class S, class State> S* rounding_errors_of([[maybe_unused]] State& s) {
  if constexpr (requires { s.sum.errors; }) return s.sum.errors.data();
  return nullptr;
}

template <class M> constexpr Index corrections_per_token() {
  if constexpr (requires { M::corrections; }) return M::corrections;
  return 1;
}
template <class M> constexpr UpdateOrder order_of() {
  UpdateOrder order{false, reads_first<M>()};
  if constexpr (requires { M::lookup_before_decay; })
    order.lookup_before_decay = M::lookup_before_decay;
  return order;
}
template <class M> constexpr Products products_of() {
  if constexpr (requires { M::products; })
    return M::products;
  else
    return M::has_delta_term ? Products::lookups_and_queries : Products::queries;
}
/// The entries of a correction's buffer.
template <class M>
constexpr Index buffer_size([[maybe_unused]] Index dk, [[maybe_unused]] Index dv) {
  if constexpr (requires { M::key_buffers; }) return M::key_buffers * dk + M::value_buffers * dv;
  return 0;
}
/// True if M has `coefficients` or, instead, `correction`.
template <class M>
inline constexpr bool has_coefficients = requires(const M& m, StateOf<M>& s, const WriteToken<M>& t,
                                                  const ReadToken<M>& q) {
  { m.coefficients(s, t, q) } -> std::convertible_to<TokenCoefficients<typename M::Scalar>>;
};
template <class M>
inline constexpr bool has_corrections = requires(const M& m, StateOf<M>& s, const WriteToken<M>& t,
                                                 const ReadToken<M>& q,
                                                 Correction<typename M::Scalar>& c) {
  m.correction(s, t, q, Index(0), static_cast<typename M::Scalar*>(nullptr), c);
};

/// Correction j of a token. The last one has the output.
template <class M, class State>
EIGEN_ALWAYS_INLINE Correction<typename M::Scalar> correction_of(
    const M& m, State& s, const WriteToken<M>& input, const ReadToken<M>& query,
    typename M::Scalar* output, [[maybe_unused]] Index j,
    [[maybe_unused]] typename M::Scalar* buffer) {
  using S = typename M::Scalar;
  const auto column = [&](const auto& x) { return x.cols() == 1 ? x.data() : columns_of(x)(j); };
  const S* const key = column(input.key);
  Correction<S> c{
      key,     key, column(input.value), query.query.data(), key, nullptr, nullptr, nullptr,
      nullptr, {}};
  if (j == corrections_per_token<M>() - 1) c.output = output;
  if constexpr (requires { input.decay.data(); })
    if (j == 0) c.decays = input.decay.data();
  if constexpr (has_corrections<M>) {
    m.correction(s, input, query, j, buffer, c);
  } else {
    c.coefficients = m.coefficients(s, input, query);
    if constexpr (requires { input.beta.data(); }) c.betas = input.beta.data();
  }
  return c;
}

/// Calls f with the buffer of a correction.
template <class M, class Matrix, class F>
EIGEN_ALWAYS_INLINE void with_correction_buffer(const Matrix& W, const F& f) {
  using S = typename M::Scalar;
  constexpr int dk = Matrix::ColsAtCompileTime, dv = Matrix::RowsAtCompileTime;
  if constexpr (buffer_size<M>(1, 1) == 0) {
    f(static_cast<S*>(nullptr));
  } else {
    constexpr bool fixed = dk != Dynamic && dv != Dynamic;
    constexpr int size = fixed ? static_cast<int>(buffer_size<M>(dk, dv)) : Dynamic;
    scratch<S, size>(buffer_size<M>(W.cols(), W.rows()),
                     [&](auto& buffer) FASTWEIGHTS_INLINE_LAMBDA { f(buffer.data()); });
  }
}

/// The corrections of a sequence; see Pairs.
template <class M, class State> class RuleCorrections {
 public:
  using S = typename M::Scalar;
  static constexpr bool has_buffers = buffer_size<M>(1, 1) > 0;
  static constexpr Index batch = has_buffers ? 8 : 32;

  RuleCorrections(const M& m, State& s, const WriteSequence<M>& inputs,
                  const ReadSequence<M>& queries, const OutSequence<M>& out, Columns<S> errors)
      : m_(m), s_(s), inputs_(inputs), queries_(queries), out_(out), errors_(errors) {
    if constexpr (has_buffers) {
      buffer_size_ = buffer_size<M>(s.W.cols(), s.W.rows());
      buffer_ = thread_buffer<S, RuleCorrections>(2 * batch * buffer_size_);
    }
  }
  static constexpr UpdateOrder order() { return order_of<M>(); }
  Index size() const { return queries_.query.cols() * per_token; }
  EIGEN_ALWAYS_INLINE Correction<S> get(Index i, Index slot) const {
    const auto signature = m_.signature();
    const Index t = i / per_token;
    auto c =
        correction_of(m_, s_, token_at<WriteToken<M>>(inputs_, signature.write(), t),
                      token_at<ReadToken<M>>(queries_, signature.read(), t),
                      columns_of(out_.output)(t), i % per_token, buffer_ + slot * buffer_size_);
    c.error = errors_(i);
    return c;
  }
  void list_prefetches(Prefetches<S>& prefetches, Index i) const {
    for (const Index last = std::min(i + 2, size()); i < last; ++i) {
      const Index t = i / per_token;
      const auto column = [&](const auto& x) { return columns_of(x)(x.cols() == size() ? i : t); };
      prefetches.rows.add(column(inputs_.value), column(out_.output), errors_(i));
      prefetches.columns.add(column(inputs_.key), column(queries_.query));
      if constexpr (requires(WriteToken<M> & token) { token.decay.data(); })
        prefetches.columns.add(column(inputs_.decay));
      if constexpr (requires(WriteToken<M> & token) { token.beta.data(); })
        prefetches.rows.add(column(inputs_.beta));
    }
  }

 private:
  static constexpr Index per_token = corrections_per_token<M>();

  const M& m_;
  State& s_;
  const WriteSequence<M>& inputs_;
  const ReadSequence<M>& queries_;
  const OutSequence<M>& out_;
  Columns<S> errors_;
  Index buffer_size_ = 0;
  S* buffer_ = nullptr;
};

/// True if W has so few rows, known at compile time, that Eigen's expressions are faster than the
/// kernels.
constexpr bool are_tiny(int rows) { return rows != Dynamic && rows < 4; }
/// True if the W of M is tiny. Of one or two rows, they are faster only if these are short.
template <class M> constexpr bool has_tiny_state() {
  using W = decltype(StateOf<M>::W);
  constexpr int rows = W::RowsAtCompileTime, columns = W::ColsAtCompileTime;
  return are_tiny(rows) && (rows == 3 || (columns != Dynamic && rows * columns < 32));
}
template <class M> inline constexpr bool is_tiny = has_tiny_state<M>();

/// One correction of a step.
template <class M, class State>
EIGEN_ALWAYS_INLINE void step_correction(State& s, const Correction<typename M::Scalar>& c,
                                         [[maybe_unused]] Index j) {
  using S = typename M::Scalar;
  constexpr bool before = order_of<M>().lookup_before_decay;
  if constexpr (corrections_per_token<M>() > 1)
    if (j > 0) {
      constexpr bool looks_up = M::has_delta_term && products_of<M>() != Products::removal;
      return step_by_panels<DecayKind::none, looks_up>(s.W, static_cast<S*>(nullptr), c, before);
    }
  step_by_panels<M::decay_kind, M::has_delta_term>(s.W, rounding_errors_of<S>(s), c, before);
}

/// True if a step of M is a removal_step. The corrections must not share a buffer.
template <class M>
inline constexpr bool removes = corrections_per_token<M>() == 2 &&
                                products_of<M>() == Products::removal&& buffer_size<M>(1, 1) == 0 &&
                                (M::decay_kind == DecayKind::none ||
                                 (M::decay_kind == DecayKind::per_channel &&
                                  order_of<M>().lookup_before_decay));

/// All corrections of a step; `correction` makes correction j.
template <class M, class State, class F>
EIGEN_ALWAYS_INLINE void step_corrections(State& s, const F& correction) {
  if constexpr (removes<M>)
    if (has_removal_step<decltype(s.W), typename M::Scalar>(s.W)) {
      const auto one = correction(0), two = correction(1);  // in order
      return step_removal<M::decay_kind>(s.W, one, two);
    }
  for (Index j = 0; j < corrections_per_token<M>(); ++j) step_correction<M>(s, correction(j), j);
}

/// True if a read takes a query and nothing else, so that a write can stand for its query.
template <class M> inline constexpr bool has_plain_query = member_count<ReadToken<M>> == 1;

/// Writes a token without a read. Also writes the errors of a rule's corrections, unless their
/// columns are null.
template <class M, class State>
EIGEN_ALWAYS_INLINE void write_by_kernel(const M& m, State& s, const WriteToken<M>& input,
                                         Columns<typename M::Scalar> errors = {}) {
  using S = typename M::Scalar;
  if constexpr (is_tiny<M> && std::is_same_v<State, StateOf<M>>)
    if (errors.data == nullptr) return m.write(s, input);
  const ReadToken<M> any_query{input.key.col(0)};
  with_correction_buffer<M>(s.W, [&](S* buffer) FASTWEIGHTS_INLINE_LAMBDA {
    step_corrections<M>(s, [&](Index j) FASTWEIGHTS_INLINE_LAMBDA {
      auto c = correction_of(m, s, input, any_query, static_cast<S*>(nullptr), j, buffer);
      c.error = errors(j);
      return c;
    });
  });
}

/// Writes a token and reads. Also writes the errors of a rule's corrections, unless their columns
/// are null.
template <class M, class State>
EIGEN_ALWAYS_INLINE void step_by_kernel(const M& m, State& s, const WriteToken<M>& input,
                                        const ReadToken<M>& query, const OutToken<M>& out,
                                        Columns<typename M::Scalar> errors = {}) {
  using S = typename M::Scalar;
  static_assert(M::decay_kind != DecayKind::per_value_row,
                "fastweights: steps of a rule cannot have one decay per value row");
  static_assert(M::decay_kind != DecayKind::compensated || corrections_per_token<M>() == 1,
                "fastweights: a compensated rule has one correction per token");
  eigen_assert(errors.data == nullptr || !reads_first<M>());
  if constexpr (reads_first<M>()) {
    m.read(s, query, out);
    if constexpr (has_plain_query<M>)
      return write_by_kernel(m, s, input);
    else
      return m.write(s, input);
  }
  if constexpr (is_tiny<M> && std::is_same_v<State, StateOf<M>>)
    if (errors.data == nullptr) {
      m.write(s, input);
      return m.read(s, query, out);
    }
  with_correction_buffer<M>(s.W, [&](S* buffer) FASTWEIGHTS_INLINE_LAMBDA {
    step_corrections<M>(s, [&](Index j) FASTWEIGHTS_INLINE_LAMBDA {
      auto c = correction_of(m, s, input, query, columns_of(out.output).data, j, buffer);
      c.error = errors(j);
      return c;
    });
  });
}

/// True if a scan is faster token by token than in pairs: W has less than two packets of rows, and
/// pairs would need padding.
template <class S> bool scans_by_steps(Index rows) {
  return rows < 2 * lanes<S> && rows % lanes<S> != 0;
}

template <class M, class State>
void scan_by_kernel(const M& m, State& s, const WriteSequence<M>& inputs,
                    const ReadSequence<M>& queries, OutSequence<M>& out,
                    Columns<typename M::Scalar> errors = {}) {
  const auto signature = m.signature();
  const auto written = signature.write();
  const auto read = signature.read();
  const Index steps = queries.query.cols();
  const auto run = [&](State& state, const auto& errors_at) FASTWEIGHTS_INLINE_LAMBDA {
    for (Index t = 0; t < steps; ++t)
      step_by_kernel(m, state, token_at<WriteToken<M>>(inputs, written, t),
                     token_at<ReadToken<M>>(queries, read, t),
                     token_at<OutToken<M>>(out, signature.out(), t), errors_at(t));
  };
  if constexpr (is_small<decltype(s.W)>()) {
    if (errors.data == nullptr) {
      // A copy that nothing else points to, so that W may stay in registers.
      State state = s;
      run(state, [](Index) FASTWEIGHTS_INLINE_LAMBDA { return Columns<typename M::Scalar>{}; });
      s = state;
      return;
    }
  }
  if (scans_by_steps<typename M::Scalar>(s.W.rows()))
    return run(s, [&](Index t) { return errors.from(t * corrections_per_token<M>()); });
  scan_pairs<M::decay_kind, products_of<M>()>(
      s.W, rounding_errors_of<typename M::Scalar>(s),
      RuleCorrections<M, State>(m, s, inputs, queries, out, errors));
}

}  // namespace fw::detail

namespace fw::inline FASTWEIGHTS_ABI {

/// A rule with the members above.
template <class M>
concept KernelRule = Memory<M> && detail::KernelScalar<typename M::Scalar> &&
    requires(StateOf<M>& s) {
  { M::decay_kind } -> std::convertible_to<detail::DecayKind>;
  { M::has_delta_term } -> std::convertible_to<bool>;
  s.W.colStride();
} && M::decay_kind != detail::DecayKind::per_value_row &&
    (detail::has_coefficients<M> || detail::has_corrections<M>);

namespace detail {

/// True if a rule has a member `step` or `scan`.
template <class M>
concept HasOwnScan = requires {
  &M::step;
}
|| requires { &M::scan; }
|| requires(const M& m, StateOf<M>& s, WriteSequence<M> inputs, ReadSequence<M> queries,
            OutSequence<M> out) {
  m.scan(s, inputs, queries, out);
};

/// The step and scan of a rule by the kernels.
template <class M> struct KernelScan {
  /// Values are read before an output is written, which may be the value itself.
  static constexpr bool in_place = !reads_first<M>();

  const M& m;

  EIGEN_ALWAYS_INLINE void write(StateOf<M>& s, const WriteToken<M>& input) const
      requires(has_plain_query<M>) {
    write_by_kernel(m, s, input);
  }
  /// One column of errors per correction, if each has a value of its own.
  template <class Errors>
  EIGEN_ALWAYS_INLINE void write(StateOf<M>& s, const WriteToken<M>& input, Errors& errors) const
      requires(M::has_delta_term&& Errors::ColsAtCompileTime == corrections_per_token<M>()) {
    write_by_kernel(m, s, input, columns_of(errors));
  }
  EIGEN_ALWAYS_INLINE void step(StateOf<M>& s, const WriteToken<M>& input,
                                const ReadToken<M>& query, const OutToken<M>& out) const {
    step_by_kernel(m, s, input, query, out);
  }
  void scan(StateOf<M>& s, const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
            OutSequence<M> out) const {
    scan_by_kernel(m, s, inputs, queries, out);
  }
};
template <KernelRule M>
requires(!HasOwnScan<M>) struct ScanImplementation<M> {
  using type = KernelScan<M>;
};

}  // namespace detail

// For rules of your own (docs/adding_a_rule.md).
using detail::Correction;
using detail::DecayKind;
using detail::KernelScalar;
using detail::Products;
using detail::scan_by_kernel;
using detail::step_by_kernel;
using detail::TokenCoefficients;

}  // namespace fw
