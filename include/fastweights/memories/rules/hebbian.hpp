#pragma once

#include <fastweights/core/stability.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `HebbianMemory` | W = λ W + η v kᵀ | y = W q | 5 d_v d_k | yes | Ba et al. 2016, 1610.06258
/// Hebbian memory with a constant decay, the fast weights of Ba et al.
///
///     W_t = λ W_{t−1} + η v_t k_tᵀ      y_t = W_t q_t
///
/// λ = η = 1 is linear attention. With λ = 1, W is a plain sum, which loses writes beside a large W
/// (in float after 2^24 equal writes): LinearAttention with CompensatedSum and η in the values
/// does not. With |λ| < 1, rounding errors fade as writes do. Shapes: W d_v×d_k, k and q d_k, v and
/// y d_v. Cost per token: 5 d_v d_k flops. With a zero key the state decays and nothing is written.
/// Throws std::invalid_argument when a size does not fit or a rate is not finite.
/// Ba, Hinton, Mnih, Leibo, Ionescu 2016, arXiv 1610.06258, eq. 1.
template <class S, int Dk = Dynamic, int Dv = Dk>
class HebbianMemory : public MatrixRule<HebbianMemory<S, Dk, Dv>, S, KeyValue<Dk, Dv>,
                                        detail::SumSegment<S, Dk, Dv>> {
  using Base =
      MatrixRule<HebbianMemory<S, Dk, Dv>, S, KeyValue<Dk, Dv>, detail::SumSegment<S, Dk, Dv>>;

 public:
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "HebbianMemory";
  static constexpr auto decay_kind = detail::DecayKind::scalar;
  static constexpr bool has_delta_term = false, kernel_backward = true, plain_coefficients = true;

  /// The constants of a HebbianMemory.
  struct Rates {
    S decay = S(0.95);  ///< λ, stable in [0, 1]
    S rate = S(0.5);    ///< η
  };

  explicit HebbianMemory(Sizes<Dk, Dv> sizes = {}, Rates rates = {}) : Base(sizes), rates_(rates) {
    detail::check_finite(name, "decay", rates.decay);
    detail::check_finite(name, "rate", rates.rate);
  }

  template <class T> auto cast() const {
    return HebbianMemory<T, Dk, Dv>(Base::signature().sizes(), {T(rates_.decay), T(rates_.rate)});
  }

  void write(OwnedState& s, const WriteToken<HebbianMemory>& t) const {
    s.W *= rates_.decay;
    s.W.noalias() += (rates_.rate * t.value) * t.key.transpose();
  }

  Violation violation(const WriteToken<HebbianMemory>&) const {
    const double decay = static_cast<double>(Eigen::numext::real(rates_.decay));
    if (decay >= 0 && decay <= 1) return {};
    return {"the constant decay", decay, "0 to 1"};
  }

  /// The kernels' coefficients of a token.
  template <class StateLike>
  detail::TokenCoefficients<S> coefficients(StateLike&, const WriteToken<HebbianMemory>&,
                                            const ReadToken<HebbianMemory>&) const {
    detail::TokenCoefficients<S> c;
    c.value_scale = rates_.rate;
    c.decay = rates_.decay;
    return c;
  }

 private:
  Rates rates_;
};

}  // namespace fw
