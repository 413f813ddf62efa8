#pragma once

#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/memories/rules/causal.hpp>
#include <fastweights/memories/rules/normaliser.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `LinearAttention` | W += v kᵀ | y = W q | 4 d_v d_k | yes | Katharopoulos et al. 2020,
//|   2006.16236
//| … with `AttentionNormaliser` | also z += k; W and z are compensated sums | y = W q / (z·q +
//|   ε) | 7 d_v d_k | yes | Katharopoulos et al. 2020, 2006.16236
/// Linear attention, the sum rule: adds the outer product of value and key, without any decay.
///
///     W_t = W_{t−1} + v_t k_tᵀ      y_t = W_t q_t
///     with AttentionNormaliser:     z_t = z_{t−1} + k_t,  y_t = W_t q_t / (z_t·q_t + ε)
///
/// Shapes: W d_v×d_k, k and q d_k (feature-mapped already), v and y d_v. Cost per token: 4 d_v d_k
/// flops, with CompensatedSum 7 d_v d_k. A zero key changes nothing; a zero query gives 0.
///
/// `Sum` is how W is summed: PlainSum without a normaliser, CompensatedSum with one (sums.hpp).
/// Throws std::invalid_argument when a size does not fit.
/// Katharopoulos et al. 2020, arXiv 2006.16236, eq. 18–20; Schlag, Irie, Schmidhuber 2021,
/// arXiv 2102.11174, eq. 12–17.
template <class S, int Dk = Dynamic, int Dv = Dk, class Normaliser = NoNormaliser,
          class Sum = typename Normaliser::Sum>
class LinearAttention {
  static_assert(!Normaliser::active || std::is_same_v<Sum, typename Normaliser::Sum>,
                "LinearAttention: W is summed as the normaliser's sum is");

 public:
  using Scalar = S;
  using Signature = KeyValue<Dk, Dv>;
  static constexpr std::string_view name = "LinearAttention";
  static constexpr auto decay_kind = Sum::decay_kind;
  static constexpr bool has_delta_term = false;
  static constexpr bool kernel_backward = !Normaliser::active && !Sum::compensated;
  static constexpr bool plain_coefficients = true;

  template <class C> struct State {
    mat<C, Dv, Dk> W;
    typename Sum::template State<C, Dv, Dk> sum;
    typename Normaliser::template State<C, Dk> normaliser;
    static constexpr auto names = fw::names("W", "sum", "normaliser");
  };
  using OwnedState = State<Owned<S>>;
  using Segment = OwnedState;  ///< the sum of its writes

  explicit LinearAttention(Sizes<Dk, Dv> sizes = {}, Normaliser normaliser = {})
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
    return LinearAttention<T, Dk, Dv, decltype(normaliser), Sum>(signature_.sizes(), normaliser);
  }

  void write(OwnedState& s, const WriteToken<LinearAttention>& t) const {
    Sum::add(s.W, s.sum, [&](auto& sum) { sum.noalias() += t.value * t.key.transpose(); });
    normaliser_.write(s.normaliser, t.key);
  }

  void read(const OwnedState& s, const ReadToken<LinearAttention>& t,
            OutToken<LinearAttention> y) const {
    detail::normalised_read(normaliser_, s, t.query, y.output);
  }

  void write_vjp(const OwnedState&, const WriteToken<LinearAttention>& t, OwnedState& ds,
                 WriteGradToken<LinearAttention> dt) const {
    dt.value.noalias() += ds.W * t.key;
    dt.key.noalias() += ds.W.transpose() * t.value;
    Sum::add_vjp(ds.W, ds.sum);
    if constexpr (Normaliser::active) normaliser_.write_vjp(ds.normaliser, dt.key);
  }

  void read_vjp(const OwnedState& s, const ReadToken<LinearAttention>& t,
                const OutGradToken<LinearAttention>& dy, OwnedState& ds,
                ReadGradToken<LinearAttention> dt) const {
    detail::normalised_read_vjp(normaliser_, s, t.query, dy.output, ds, dt.query);
  }

  /// The kernels' coefficients of a token. Updates the normaliser.
  template <class StateLike>
  detail::TokenCoefficients<S> coefficients(StateLike& s, const WriteToken<LinearAttention>& t,
                                            const ReadToken<LinearAttention>& query) const {
    detail::TokenCoefficients<S> c;
    normaliser_.write(s.normaliser, t.key);
    c.read_scale = read_scale(s, query);
    return c;
  }
  template <class StateLike>
  S read_scale(const StateLike& s, const ReadToken<LinearAttention>& query) const {
    if constexpr (Normaliser::active) return normaliser_.inverse(s.normaliser, query.query);
    return S(1);
  }

  /// Y = W Q + V triu(KᵀQ), W += V Kᵀ.
  void chunk(OwnedState& s, const WriteSequence<LinearAttention>& inputs,
             const ReadSequence<LinearAttention>& queries, OutSequence<LinearAttention> out) const {
    const auto weights = detail::causal_products<S>(inputs.key, queries.query);
    detail::set_product(out.output, s.W, queries.query);
    detail::add_product(out.output, inputs.value, weights);
    if constexpr (Normaliser::active) normalise_chunk(s, inputs, queries, out);
    detail::add_writes<Sum>(s, inputs.value, inputs.key);
  }

  Segment empty_segment() const { return detail::zeros<Segment>(state_extents()); }
  void extend(Segment& g, const WriteToken<LinearAttention>& t) const { write(g, t); }
  void merge(Segment& g, const Segment& later) const {
    if (&g == &later) return merge(g, Segment(later));
    Sum::merge(g.W, g.sum, later.W, later.sum);
    if constexpr (Normaliser::active) {
      normaliser_.write(g.normaliser, later.normaliser.sum);
      g.normaliser.compensation += later.normaliser.compensation;
    }
  }
  void apply(const Segment& g, OwnedState& s) const { merge(s, g); }

 private:
  Index dv() const { return signature_.dv; }
  Index dk() const { return signature_.dk; }

  // Updates z token by token, so that it is rounded as in the recurrent form.
  void normalise_chunk(OwnedState& s, const WriteSequence<LinearAttention>& inputs,
                       const ReadSequence<LinearAttention>& queries,
                       OutSequence<LinearAttention>& out) const {
    for (Index t = 0; t < inputs.key.cols(); ++t) {
      normaliser_.write(s.normaliser, inputs.key.col(t));
      if constexpr (Normaliser::active)
        out.output.col(t) *= normaliser_.inverse(s.normaliser, queries.query.col(t));
    }
  }

  Signature signature_;
  [[no_unique_address]] Normaliser normaliser_;
};

}  // namespace fw
