#pragma once

#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/scan/row_scan.hpp>
#include <fastweights/memories/rules/inner_losses.hpp>
#include <fastweights/memories/rules/retentions.hpp>
#include <type_traits>

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

/// The tokens of a MirasMemory whose W is A, for scan_rows.
template <class M> struct MirasTokens : RowTokens<typename M::Scalar> {
  using S = typename M::Scalar;
  static constexpr bool has_lookups = true, couples_rows = true, needs_norm = false;
  const M& m;
  const WriteSequence<M>& inputs;
  S* update;  // of the token, with an entry per row
  S decay = S(1);

  void begin(Index t, const S* retrieved) {
    const auto token = token_at<WriteToken<M>>(inputs, m.signature().write(), t);
    using Vector = Eigen::Matrix<S, Dynamic, 1>;
    Eigen::Map<Vector> u(update, token.value.size());
    u = Eigen::Map<const Vector>(retrieved, u.size());
    m.set_update(token, u);
    decay = token.decay;
  }
  void end(Index, S) {}
  S scale() const { return S(1); }

  template <class Column> using Write = DecayAndAdd<Column, S>;
};

}  // namespace detail

/// A memory that learns at test time: a write is a gradient step on a loss of the error W k − v,
/// from a decayed sum of earlier steps. The retention says what W is, given this sum.
///
///     e_t = W_{t−1} k_t − v_t     A_t = α_t A_{t−1} − β_t g(e_t) k_tᵀ
///     W_t = retention(A_t)        y_t = W_t q_t
///
/// | memory | loss | retention |
/// |---|---|---|
/// | `Yaad` | `HuberLoss`: g = e if ‖e‖ ≤ δ_t, else δ_t e/‖e‖ | W = A |
/// | `Moneta` | `CubicLoss`: g = 3 tanh(10 e) (e² + 1e-6), entrywise | W = A / ‖A‖₄² |
/// | `Memora` | `SquaredLoss`: g = e | W = softmax of every row of A |
///
/// The last is W_t = softmax(α_t log W_{t−1} − β_t e_t k_tᵀ), since a constant that is added to a
/// row of A does not change W. With SquaredLoss and PlainRetention it is Comba with p = k.
///
/// Shapes: A and W d_v×d_k, k and q d_k, v and y d_v, β, α and δ 1. Cost per token: 7 d_v d_k
/// flops; Moneta 17 d_v d_k; Memora 13 d_v d_k and 2 d_v d_k exponentials. β and δ are in [0, 2],
/// α in [0, 1]. A key of zeros writes nothing.
///
/// Yaad is stable for β‖k‖² ≤ 1 + α: normalise the keys. Rows of Memora's W are weights with sum 1,
/// so its outputs are never larger than the entries of the query, and finite for all finite A.
/// Moneta's W is 0 for A = 0, and of size 1/‖A‖ otherwise, so a small A gives large outputs: learn
/// the initial state, or start with A of size 1. No bound holds for its g, which grows as e².
///
/// Throws std::invalid_argument when a size does not fit. Behrouz, Razaviyayn, Zhong, Mirrokni
/// 2025, arXiv 2504.13173, section 5, with matrix memories. The paper leaves the axis of the
/// softmax open.
template <class S, int Dk = Dynamic, int Dv = Dk, class Loss = SquaredLoss,
          class Retention = PlainRetention>
class MirasMemory {
 public:
  using Scalar = S;
  using Signature = typename Loss::template Signature<Dk, Dv>;
  static constexpr std::string_view name = "MirasMemory";

  template <class C> struct State {
    mat<C, Dv, Dk> A;  ///< the decayed sum of gradient steps, d_v×d_k
    static constexpr auto names = fw::names("A");
  };
  using OwnedState = State<Owned<S>>;

  explicit MirasMemory(Sizes<Dk, Dv> sizes = {}, Loss loss = {})
      : signature_{{sizes.key_size, sizes.value_size}}, loss_(loss) {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const { return {{signature_.dv, signature_.dk}}; }
  template <class T> auto cast() const {
    return MirasMemory<T, Dk, Dv, Loss, Retention>(signature_.sizes(), loss_);
  }

  void write(OwnedState& s, const WriteToken<MirasMemory>& t) const {
    scratch<S, Dv>(signature_.dv, [&](auto& update) FASTWEIGHTS_INLINE_LAMBDA {
      Retention::product(s.A, t.key, update);
      set_update(t, update);
      detail::decay_and_add(s.A, t.decay, update, t.key);
    });
  }
  /// Replaces W k by −β g.
  template <class Update> void set_update(const WriteToken<MirasMemory>& t, Update& update) const {
    update -= t.value;
    loss_.gradient(t, update);
    update *= -t.beta;
  }
  void scan(OwnedState& s, const WriteSequence<MirasMemory>& inputs,
            const ReadSequence<MirasMemory>& queries, OutSequence<MirasMemory> out) const
      requires(std::is_same_v<Retention, PlainRetention>&& detail::KernelScalar<S>) {
    struct Buffer;
    detail::scan_rows(
        detail::MirasTokens<MirasMemory>{detail::row_tokens<MirasMemory>(inputs, queries, out),
                                         *this, inputs,
                                         detail::thread_buffer<S, Buffer>(signature_.dv)},
        queries.query.cols(), s.A);
  }
  /// Stability of memories that are linear in A.
  Violation violation(
      const WriteToken<MirasMemory>& t) const requires std::is_same_v<Retention, PlainRetention> {
    return undecayed_delta_violation(t.beta, t.key, t.decay);
  }
  void read(const OwnedState& s, const ReadToken<MirasMemory>& t, OutToken<MirasMemory> y) const {
    Retention::product(s.A, t.query, y.output);
  }
  void write_vjp(const OwnedState& s, const WriteToken<MirasMemory>& t, OwnedState& ds,
                 WriteGradToken<MirasMemory> dt) const {
    scratch<S, Dv, 3>(signature_.dv, [&](auto& error, auto& g, auto& d) {
      Retention::product(s.A, t.key, error);
      error -= t.value;
      g = error;
      loss_.gradient(t, g);
      d.noalias() = ds.A * t.key;  // the gradient of the update −β g
      dt.beta -= detail::product_sum(g, d);
      g *= -t.beta;
      dt.key.noalias() += ds.A.transpose() * g;
      d *= -t.beta;
      loss_.gradient_vjp(t, error, d, dt);
      dt.value -= d;
      detail::apply_decay_vjp(s.A, t.decay, ds.A, dt.decay);
      Retention::product_vjp(s.A, t.key, d, ds.A, dt.key);
    });
  }
  void read_vjp(const OwnedState& s, const ReadToken<MirasMemory>& t,
                const OutGradToken<MirasMemory>& dy, OwnedState& ds,
                ReadGradToken<MirasMemory> dt) const {
    Retention::product_vjp(s.A, t.query, dy.output, ds.A, dt.query);
  }

 private:
  Signature signature_;
  Loss loss_;
};

//| `Yaad` | W = α W − β w e kᵀ, e = W k − v, w = min(1, δ/‖e‖) | y = W q | 7 d_v d_k |  |
//|   Behrouz et al. 2025, 2504.13173
//| `Moneta` | A = α A − β g(e) kᵀ, g ≈ 3 e² with the sign of e, W = A/‖A‖₄² | y = W q | 17 d_v
//|   d_k |  | Behrouz et al. 2025, 2504.13173
//| `Memora` | W = softmax(α log W − β e kᵀ) of every row | y = W q | 13 d_v d_k and 2 d_v d_k
//|   exponentials |  | Behrouz et al. 2025, 2504.13173
/// Outliers do not spoil the memory: its loss grows linearly beyond δ.
template <class S, int Dk = Dynamic, int Dv = Dk> using Yaad = MirasMemory<S, Dk, Dv, HuberLoss>;

/// Large errors count more than in the delta rule, and W has a bounded norm.
template <class S, int Dk = Dynamic, int Dv = Dk>
using Moneta = MirasMemory<S, Dk, Dv, CubicLoss, FourNormRetention>;

/// Rows of W are distributions over the key entries.
template <class S, int Dk = Dynamic, int Dv = Dk>
using Memora = MirasMemory<S, Dk, Dv, SquaredLoss, SoftmaxRetention>;

}  // namespace fw
