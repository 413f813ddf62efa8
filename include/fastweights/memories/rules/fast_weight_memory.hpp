#pragma once

#include <cmath>
#include <fastweights/core/stability.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/kernels/scan/row_scan.hpp>
#include <fastweights/math/standardise.hpp>
#include <fastweights/memories/rules/normaliser.hpp>
#include <stdexcept>

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

/// The tokens of FastWeightMemory, for scan_rows. The stored matrix is P.
template <class S> struct UnitBallTokens : RowTokens<S> {
  static constexpr bool has_lookups = true, couples_rows = true, needs_norm = true;
  Columns<const S> values, betas;
  Index value_size;
  S epsilon;
  S* update;              // of the token, with an entry per row
  S decay = S(1);         // of the token's write
  S inverse_norm = S(1);  // 1 / max(1, ‖P‖)

  void begin(Index t, const S* retrieved) {
    decay = inverse_norm;
    for (Index i = 0; i < value_size; ++i)
      update[i] = *betas(t) * (values(t)[i] - decay * retrieved[i]);
  }
  void end(Index t, S squares) {
    inverse_norm = squares > S(1) ? S(1) / std::sqrt(squares) : S(1);
    Eigen::Map<Eigen::Matrix<S, Dynamic, 1>> y(this->output(t), value_size);
    y *= inverse_norm;
    standardise(y, epsilon);
  }
  S scale() const { return inverse_norm; }

  template <class Column> using Write = DecayAndAdd<Column, S>;
};

}  // namespace detail

//| `FastWeightMemory` | the delta rule, then W /= max(1, ‖W‖_F) | y = LN(W q) | 9 d_v d_k |  |
//|   Schlag et al. 2021, 2011.07831
/// The fast weight memory: a delta rule whose matrix is projected to the unit ball after each
/// write, read through a layer norm without weights.
///
///     P = W_{t−1} + β_t (v_t − W_{t−1} k_t) k_tᵀ     W_t = P / max(1, ‖P‖_F)
///     y_t = (r − mean(r)) / √(var(r) + ε),  r = W_t q_t
///
/// Shapes: W d_v×d_k, k and q d_k (feature-mapped already), v and y d_v, β 1. Cost per token:
/// 9 d_v d_k flops. A write with ‖P‖ > 1 scales down all stored values. Outputs have length √d_v,
/// or less if var(r) is not much larger than ε. For d_v = 1 outputs are 0. ‖P‖² must not overflow:
/// in float, entries of P must be below 1e19 / √(d_v d_k). β is in [0, 2]; keys have any length.
/// Throws std::invalid_argument when a size
/// does not fit or ε ≤ 0, since a constant r is divided by √ε.
/// Schlag, Munkhdalai, Schmidhuber 2021, arXiv 2011.07831, section 3, which has the product of two
/// keys instead of one key; this form is in Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174,
/// section 6.1. The code of the latter does not scale the first P of a sequence.
template <class S, int Dk = Dynamic, int Dv = Dk> class FastWeightMemory {
 public:
  using Scalar = S;
  using Signature = KeyValueBeta<Dk, Dv>;
  static constexpr std::string_view name = "FastWeightMemory";

  template <class C> struct State {
    mat<C, Dv, Dk> W;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<Owned<S>>;

  explicit FastWeightMemory(Sizes<Dk, Dv> sizes = {}, S epsilon = S(1e-5))
      : signature_{{sizes.key_size, sizes.value_size}}, epsilon_(epsilon) {
    signature_.check(name);
    detail::check_above_zero(name, "epsilon", epsilon);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const { return {{signature_.dv, signature_.dk}}; }
  template <class T> auto cast() const {
    return FastWeightMemory<T, Dk, Dv>(signature_.sizes(), T(epsilon_));
  }

  void write(OwnedState& s, const WriteToken<FastWeightMemory>& t) const {
    scratch<S, Dv>(signature_.dv, [&](auto& update) {
      update.noalias() = s.W * t.key;
      update = t.beta * (t.value - update);
      s.W.noalias() += update * t.key.transpose();
    });
    using std::sqrt;
    const S squares = s.W.cwiseProduct(s.W).sum();
    if (outside(squares)) s.W /= S(sqrt(squares));
  }

  /// ‖P‖ ≤ 1 + β ‖k‖ (‖v‖ + ‖k‖), as ‖W‖ ≤ 1.
  Violation violation(const WriteToken<FastWeightMemory>& t) const {
    using Real = typename Eigen::NumTraits<S>::Real;
    const double limit = std::sqrt(static_cast<double>(std::numeric_limits<Real>::max())) / 4;
    const double key = std::sqrt(detail::squared_norm(t.key));
    const double update =
        detail::largest_strength(t.beta) * key * (std::sqrt(detail::squared_norm(t.value)) + key);
    if (update <= limit) return {};
    return {"beta times the norms of key and value", update, "a number whose square is finite"};
  }

  void read(const OwnedState& s, const ReadToken<FastWeightMemory>& t,
            OutToken<FastWeightMemory> y) const {
    detail::set_product_with_vector(y.output, s.W, t.query);
    detail::standardise(y.output, epsilon_);
  }

  void scan(OwnedState& s, const WriteSequence<FastWeightMemory>& inputs,
            const ReadSequence<FastWeightMemory>& queries,
            OutSequence<FastWeightMemory> out) const requires detail::KernelScalar<S> {
    using detail::columns_of, detail::row_tokens;
    struct Buffer;
    detail::scan_rows(
        detail::UnitBallTokens<S>{row_tokens<FastWeightMemory>(inputs, queries, out),
                                  columns_of(inputs.value), columns_of(inputs.beta), signature_.dv,
                                  epsilon_, detail::thread_buffer<S, Buffer>(signature_.dv)},
        queries.query.cols(), s.W);
  }

  /// Does not compute P: ‖P‖² and P·dW follow from W and the update u.
  void write_vjp(const OwnedState& s, const WriteToken<FastWeightMemory>& t, OwnedState& ds,
                 WriteGradToken<FastWeightMemory> dt) const {
    scratch<S, Dv, 3>(signature_.dv, [&](auto& retrieved, auto& error, auto& dupdate) {
      retrieved.noalias() = s.W * t.key;
      error = t.value - retrieved;
      shrink_vjp(s, t, retrieved, error, ds, dupdate);
      dupdate.noalias() = ds.W * t.key;
      dt.beta += error.cwiseProduct(dupdate).sum();
      auto &update = error, &derror = dupdate, &dretrieved = dupdate;  // reuse the storage
      update *= t.beta;
      dt.key.noalias() += ds.W.transpose() * update;
      derror *= t.beta;
      dt.value += derror;
      dretrieved *= S(-1);
      detail::product_vjp(s.W, t.key, dretrieved, ds.W, dt.key);
    });
  }

  void read_vjp(const OwnedState& s, const ReadToken<FastWeightMemory>& t,
                const OutGradToken<FastWeightMemory>& dy, OwnedState& ds,
                ReadGradToken<FastWeightMemory> dt) const {
    scratch<S, Dv, 2>(signature_.dv, [&](auto& y, auto& dread) {
      y.noalias() = s.W * t.query;
      const S inverse = detail::standardise(y, epsilon_);
      dread = dy.output;
      detail::standardise_vjp(y, inverse, dread);
      detail::product_vjp(s.W, t.query, dread, ds.W, dt.query);
    });
  }

 private:
  // Compares the real part, so that a complex step takes the branch of the real number.
  static bool outside(const S& squares) { return detail::real_part(squares) > 1; }

  // Turns the gradient dW of P/‖P‖ into that of P = W + u kᵀ, u = β·error:
  // (dW − P (P·dW)/‖P‖²) / ‖P‖.
  template <class R, class E, class Buffer>
  void shrink_vjp(const OwnedState& s, const WriteToken<FastWeightMemory>& t, const R& retrieved,
                  const E& error, OwnedState& ds, Buffer& buffer) const {
    const S along_key = t.key.cwiseProduct(t.key).sum();
    const S squares = s.W.cwiseProduct(s.W).sum() +
                      t.beta * (S(2) * error.cwiseProduct(retrieved).sum() +
                                t.beta * along_key * error.cwiseProduct(error).sum());
    if (!outside(squares)) return;
    using std::sqrt;
    const S inverse = S(1) / S(sqrt(squares));
    buffer.noalias() = ds.W * t.key;
    const S along =
        (s.W.cwiseProduct(ds.W).sum() + t.beta * error.cwiseProduct(buffer).sum()) / squares;
    ds.W -= along * s.W;
    buffer = (-along * t.beta) * error;
    ds.W.noalias() += buffer * t.key.transpose();
    ds.W *= inverse;
  }

  Signature signature_;
  S epsilon_;
};

}  // namespace fw
