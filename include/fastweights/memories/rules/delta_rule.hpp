#pragma once

#include <fastweights/core/stability.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/memories/rules/causal.hpp>
#include <fastweights/memories/rules/normaliser.hpp>
#include <fastweights/memories/rules/segments.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `DeltaRule` | W += β (v − W k) kᵀ | y = W q | 6 d_v d_k | yes | Schlag et al. 2021,
//|   2102.11174
//| … with `KeyValueVectorBeta` | one β per value row | y = W q | 6 d_v d_k |  | Schlag et al.
//|   2021, 2102.11174
//| … with `AttentionNormaliser` | W += β (v − (W k) / (z·k)) kᵀ, z += k, both compensated | y =
//|   W q / (z·q + ε) | 9 d_v d_k |  | Schlag et al. 2021, 2102.11174, section 4.2
/// The delta rule: retrieves the value stored under the key and writes the difference to the new
/// value.
///
///     u_t = β_t (v_t − W_{t−1} k_t)     W_t = W_{t−1} + u_t k_tᵀ     y_t = W_t q_t
///
/// β is one write strength per token (`KeyValueBeta`, the default) or one per value row
/// (`KeyValueVectorBeta`). With AttentionNormaliser, w_t = z_{t−1}·k_t (1 if this is exactly 0) and
/// g_t = 1/(w_t + ε):
///
///     u_t = β_t w_t g_t (v_t − g_t W_{t−1} k_t)     z_t = z_{t−1} + k_t
///     y_t = W_t q_t / (z_t·q_t + ε)
///
/// With a normaliser, W is a compensated sum, as z (CompensatedSum).
///
/// Shapes: W d_v×d_k, k and q d_k (feature-mapped already), v and y d_v, β 1 or d_v.
/// Cost per token: 6 d_v d_k flops, compensated 9 d_v d_k. β ≥ 0. Stable for β‖k‖² ≤ 2: normalise
/// the keys. With a normaliser stability also depends on z. A zero key writes nothing.
/// Throws std::invalid_argument when a size does not fit. Widrow & Hoff 1960; Schlag, Irie,
/// Schmidhuber 2021, arXiv 2102.11174, eq. 23–25 and section 4.2; chunked (WY) form: Yang et al.
/// 2024, arXiv 2406.06484, section 3.
template <class S, int Dk = Dynamic, int Dv = Dk, class Normaliser = NoNormaliser,
          template <int, int> class Inputs = KeyValueBeta>
class DeltaRule : public detail::SegmentWrites<DeltaRule<S, Dk, Dv, Normaliser, Inputs>,
                                               detail::AffineSegment<S, Dk, Dv>> {
 public:
  using Scalar = S;
  using Signature = Inputs<Dk, Dv>;
  static constexpr std::string_view name = "DeltaRule";
  using Sum = typename Normaliser::Sum;
  static constexpr auto decay_kind = Sum::decay_kind;
  static constexpr bool has_delta_term = true;
  static constexpr bool kernel_backward = !Normaliser::active, plain_coefficients = true;

  template <class C> struct State {
    mat<C, Dv, Dk> W;
    typename Sum::template State<C, Dv, Dk> sum;
    typename Normaliser::template State<C, Dk> normaliser;
    static constexpr auto names = fw::names("W", "sum", "normaliser");
  };
  using OwnedState = State<Owned<S>>;

  explicit DeltaRule(Sizes<Dk, Dv> sizes = {}, Normaliser normaliser = {})
      : signature_{{sizes.key_size, sizes.value_size}}, normaliser_(normaliser) {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    return {{dv(), dk()},
            Sum::template extents<Dv, Dk>(dv(), dk()),
            normaliser_.template extents<Dk>(dk())};
  }
  template <class T> auto cast() const {
    auto normaliser = normaliser_.template cast<T>();
    return DeltaRule<T, Dk, Dv, decltype(normaliser), Inputs>(signature_.sizes(), normaliser);
  }

  void write(OwnedState& s, const WriteToken<DeltaRule>& t) const {
    const Gain gain = gain_of(s, t.key);
    scratch<S, Dv>(dv(), [&](auto& update) FASTWEIGHTS_INLINE_LAMBDA {
      update.noalias() = s.W * t.key;
      update = gain.write * times_beta(t.beta, t.value - gain.read * update);
      Sum::add(s.W, s.sum, [&](auto& sum) { sum.noalias() += update * t.key.transpose(); });
    });
    normaliser_.write(s.normaliser, t.key);
  }

  static constexpr bool key_bounds_strength = !Normaliser::active;
  Violation violation(const WriteToken<DeltaRule>& t) const requires(!Normaliser::active) {
    return delta_violation(t.beta, t.key);
  }

  void read(const OwnedState& s, const ReadToken<DeltaRule>& t, OutToken<DeltaRule> y) const {
    detail::normalised_read(normaliser_, s, t.query, y.output);
  }

  void write_vjp(const OwnedState& s, const WriteToken<DeltaRule>& t, OwnedState& ds,
                 WriteGradToken<DeltaRule> dt) const {
    normaliser_.write_vjp(ds.normaliser, dt.key);
    Sum::add_vjp(ds.W, ds.sum);
    const Gain gain = gain_of(s, t.key);
    scratch<S, Dv, 3>(dv(), [&](auto& retrieved, auto& error, auto& dupdate) {
      retrieved.noalias() = s.W * t.key;
      dupdate.noalias() = ds.W * t.key;
      error = t.value - gain.read * retrieved;
      detail::add_scale_vjp(gain.write * error, dupdate, dt.beta);
      const S dwrite = times_beta(t.beta, error).cwiseProduct(dupdate).sum();
      auto &update = error, &derror = error, &dretrieved = error;  // reuse the error's storage
      update = gain.write * times_beta(t.beta, error);
      dt.key.noalias() += ds.W.transpose() * update;
      derror = gain.write * times_beta(t.beta, dupdate);
      dt.value += derror;
      const S dread = -derror.cwiseProduct(retrieved).sum();
      dretrieved *= -gain.read;
      detail::product_vjp(s.W, t.key, dretrieved, ds.W, dt.key);
      gain_vjp(s, t.key, gain, dwrite, dread, ds, dt.key);
    });
  }

  void read_vjp(const OwnedState& s, const ReadToken<DeltaRule>& t,
                const OutGradToken<DeltaRule>& dy, OwnedState& ds,
                ReadGradToken<DeltaRule> dt) const {
    detail::normalised_read_vjp(normaliser_, s, t.query, dy.output, ds, dt.query);
  }

  /// The kernels' coefficients of a token. Updates the normaliser.
  template <class StateLike>
  detail::TokenCoefficients<S> coefficients(StateLike& s, const WriteToken<DeltaRule>& t,
                                            const ReadToken<DeltaRule>& query) const {
    const Gain gain = gain_of(s, t.key);
    detail::TokenCoefficients<S> c;
    c.value_scale = gain.write;
    c.retrieved_scale = gain.write * gain.read;
    if constexpr (!detail::is_per_entry<decltype(t.beta)>) c.beta = t.beta;
    normaliser_.write(s.normaliser, t.key);
    c.read_scale = read_scale(s, query);
    return c;
  }
  template <class StateLike>
  S read_scale(const StateLike& s, const ReadToken<DeltaRule>& query) const {
    if constexpr (Normaliser::active) return normaliser_.inverse(s.normaliser, query.query);
    return S(1);
  }

  /// The WY form: the updates U solve a unit triangular system (solve_chunk),
  /// u_t = β_t (v_t − W k_t − Σ_{i<t} u_i (k_i·k_t)). Then Y = W Q + U triu(KᵀQ) and W += U Kᵀ.
  void chunk(OwnedState& s, const WriteSequence<DeltaRule>& inputs,
             const ReadSequence<DeltaRule>& queries, OutSequence<DeltaRule> out) const {
    const Index steps = inputs.key.cols();
    const auto weights = detail::causal_products<S>(inputs.key, queries.query);
    Eigen::Matrix<S, Dv, Dynamic, Dv == 1 ? Eigen::RowMajor : Eigen::ColMajor> updates(dv(), steps);
    Eigen::Matrix<S, 1, Dynamic> inverses = Eigen::Matrix<S, 1, Dynamic>::Ones(steps);
    detail::set_product(updates, s.W, inputs.key);
    detail::solve_chunk(
        inputs.key, inputs.key, inputs.beta, updates, [](auto&) {},
        [&](auto& u, const auto& key_products) {
          using A = typename std::remove_cvref_t<decltype(u)>::Scalar;
          for (Index t = 0; t < steps; ++t) {
            const Gain gain = gain_of(s, inputs.key.col(t));
            auto update = u.col(t);
            update.noalias() += u.leftCols(t) * key_products.col(t).head(t);
            update = A(gain.write) *
                     times_beta<A>(inputs.beta.token(t, {signature_.dv, 1}),
                                   inputs.value.col(t).template cast<A>() - A(gain.read) * update);
            normaliser_.write(s.normaliser, inputs.key.col(t));
            if constexpr (Normaliser::active)
              inverses[t] = normaliser_.inverse(s.normaliser, queries.query.col(t));
          }
        });
    detail::set_product(out.output, s.W, queries.query);
    detail::add_product(out.output, updates, weights);
    if constexpr (Normaliser::active) out.output *= inverses.asDiagonal();
    detail::add_writes<Sum>(s, updates, inputs.key);
  }

  /// W_t = W_{t−1} (I − β k kᵀ) + β v kᵀ is affine in W, so that a segment of writes is W ← W A +
  /// B. With one β per value row, every row of W would need its own A; with a normaliser, the write
  /// depends on z. These have no segments.
  static constexpr bool mergeable =
      !Normaliser::active && std::is_same_v<Signature, KeyValueBeta<Dk, Dv>>;

  void extend(detail::AffineSegment<S, Dk, Dv>& g,
              const WriteToken<DeltaRule>& t) const requires mergeable {
    g.add(t.key, t.value, t.beta, S(1), t.key);
  }

 private:
  // u = write · β (v − read · W k). Without a normaliser write = read = 1, with one write = w g and
  // read = g.
  struct Gain {
    S weight = S(1);
    S write = S(1);
    S read = S(1);
  };

  template <class StateLike, class K> Gain gain_of(const StateLike& s, const K& key) const {
    if constexpr (Normaliser::active) {
      const S weight = normaliser_.weight(s.normaliser, key);
      const S read = normaliser_.inverse(weight);
      return {weight, weight * read, read};
    } else {
      return {};
    }
  }

  template <class K, class DK>
  void gain_vjp([[maybe_unused]] const OwnedState& s, [[maybe_unused]] const K& key,
                [[maybe_unused]] const Gain& gain, [[maybe_unused]] const S& dwrite,
                [[maybe_unused]] const S& dread, [[maybe_unused]] OwnedState& ds,
                [[maybe_unused]] DK& dkey) const {
    if constexpr (Normaliser::active) {
      const S dgain = dread + dwrite * gain.weight;  // the gradient of 1/(weight + ε)
      const S dweight = dwrite * gain.read - dgain * gain.read * gain.read;
      normaliser_.weight_vjp(s.normaliser, key, dweight, ds.normaliser, dkey);
    }
  }

  template <class A = S, class X>
  static EIGEN_ALWAYS_INLINE auto times_beta(const S& beta, const X& x) {
    return A(beta) * x;
  }
  template <class A = S, class B, class X>
  static EIGEN_ALWAYS_INLINE auto times_beta(const Eigen::MatrixBase<B>& beta, const X& x) {
    return beta.derived().template cast<A>().cwiseProduct(x);
  }
  Index dv() const { return signature_.dv; }
  Index dk() const { return signature_.dk; }

  Signature signature_;
  [[no_unique_address]] Normaliser normaliser_;
};

}  // namespace fw
