#pragma once

#include <fastweights/core/recurrent_signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/memories/recurrent/delta_step.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `DeltaRnn` | the delta rule for W and for R | y = W q + R softmax(y_{t−1}) | 6 d_v (d_k +
//|   d_v) |  | Irie et al. 2021, 2106.06295
/// The Delta RNN: a fast net with a recurrent connection. The delta rule updates both matrices.
///
///     W_t = W_{t−1} + β_t (v_t − W_{t−1} k_t) k_tᵀ
///     R_t = R_{t−1} + β'_t (v'_t − R_{t−1} k'_t) k'_tᵀ
///     y_t = W_t q_t + R_t softmax(y_{t−1})
///
/// with recurrent_key = k' and so on. Shapes: W d_v×d_k, R d_v×d_v, k and q d_k (feature-mapped
/// already), k' d_v (after its softmax), v, v' and y d_v. State: W, R and y, initially zero, so
/// that the first softmax is uniform. Cost per token: 6 d_v (d_k + d_v) flops; only R_t
/// softmax(y_{t−1}) depends on y_{t−1}. β and β' are in [0, 2]. Stable for β‖k‖² ≤ 2 and
/// β'‖k'‖² ≤ 2: normalise the keys. A FastWeightLayer around it is the layer of the source. Throws
/// std::invalid_argument when a size does not fit. Irie, Schlag, Csordás, Schmidhuber 2021, arXiv
/// 2106.06295, section 3.
template <class S, int Dk = Dynamic, int Dv = Dk> class DeltaRnn {
 public:
  using Scalar = S;
  using Signature = RecurrentKeyValueBeta<Dk, Dv>;
  static constexpr std::string_view name = "DeltaRnn";

  template <class C> struct State {
    mat<C, Dv, Dk> W;
    mat<C, Dv, Dv> R;   ///< the matrix that reads the softmax of the last output, d_v×d_v
    vec<C, Dv> output;  ///< the last one, d_v rows
    static constexpr auto names = fw::names("W", "R", "output");
  };
  using OwnedState = State<Owned<S>>;

  explicit DeltaRnn(Sizes<Dk, Dv> sizes = {}) : signature_{{sizes.key_size, sizes.value_size}} {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index dv = signature_.dv;
    return {{dv, signature_.dk}, {dv, dv}, {dv, 1}};
  }
  template <class T> auto cast() const { return DeltaRnn<T, Dk, Dv>(signature_.sizes()); }

  void write(OwnedState& s, const WriteToken<DeltaRnn>& t) const {
    scratch<S, Dv>(signature_.dv, [&](auto& context) {
      SoftmaxMap().map(s.output, context);
      s.output.setZero();
      detail::delta_step(s.W, fast(t), s.output);
      detail::delta_step(s.R, recurrent(t, context), s.output);
    });
  }

  Violation violation(const WriteToken<DeltaRnn>& t) const {
    if (const Violation v = delta_violation(t.beta, t.key)) return v;
    return delta_violation(t.recurrent_beta, t.recurrent_key,
                           "recurrent_beta times the squared norm of recurrent_key");
  }

  void read(const OwnedState& s, const ReadToken<DeltaRnn>&, OutToken<DeltaRnn> y) const {
    y.output = s.output;
  }

  void write_vjp(const OwnedState& s, const WriteToken<DeltaRnn>& t, OwnedState& ds,
                 WriteGradToken<DeltaRnn> dt) const {
    scratch<S, Dv, 2>(signature_.dv, [&](auto& context, auto& dcontext) {
      SoftmaxMap().map(s.output, context);
      dcontext.setZero();
      detail::delta_step_vjp(s.W, fast(t), ds.output, ds.W, fast(dt));
      detail::delta_step_vjp(s.R, recurrent(t, context), ds.output, ds.R, recurrent(dt, dcontext));
      ds.output.setZero();
      SoftmaxMap().vjp(s.output, context, dcontext, ds.output);
    });
  }

  void read_vjp(const OwnedState&, const ReadToken<DeltaRnn>&, const OutGradToken<DeltaRnn>& dy,
                OwnedState& ds, ReadGradToken<DeltaRnn>) const {
    ds.output += dy.output;
  }

 private:
  // The inputs of each matrix, or their gradients.
  template <class T> static auto fast(T& t) {
    return detail::DeltaToken{t.key, t.value, t.beta, t.query};
  }
  template <class T, class X> static auto recurrent(T& t, X& context) {
    return detail::DeltaToken{t.recurrent_key, t.recurrent_value, t.recurrent_beta, context};
  }

  Signature signature_;
};

}  // namespace fw
