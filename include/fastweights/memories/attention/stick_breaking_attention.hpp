#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/memories/attention/token_history.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// powers = e^{−|scores|}; weights = σ(scores) e^{−sums} with sums = Σ softplus(score) of all newer
// tokens: −sums is the logarithm of what they left of the stick. A product of 1 − σ would lose
// shares below a unit of rounding, and so would a sum in float.
template <class H, class Z, class P>
void break_stick(const H& history, const Z& scores, P& powers, P& weights) {
  using std::exp;
  using std::log;
  using S = typename P::Scalar;
  constexpr bool is_real = std::is_floating_point_v<S>;
  const auto positive = [](const S& z) { return real_part(z) > 0 ? z : S(0); };
  if constexpr (is_real) {
    powers.array() = (-scores.array().abs()).exp();
    weights.array() = scores.array().max(S(0)) + powers.array().log1p();
  } else {
    for (Index i = 0; i < scores.size(); ++i) {
      powers[i] = exp(S(scores[i] - S(2) * positive(scores[i])));
      weights[i] = positive(scores[i]) + log(S(S(1) + powers[i]));
    }
  }
  std::conditional_t<std::is_same_v<S, float>, double, S> sum(0);
  newest_first(history, [&](Index i) {
    const S own = weights[i];
    weights[i] = static_cast<S>(sum);
    sum += own;
  });
  // σ(z) = e^{min(z, 0)} / (1 + e^{−|z|})
  if constexpr (is_real) {
    weights.array() = (scores.array().min(S(0)) - weights.array()).exp() / (S(1) + powers.array());
  } else {
    for (Index i = 0; i < scores.size(); ++i)
      weights[i] = exp(S(scores[i] - positive(scores[i]) - weights[i])) / (S(1) + powers[i]);
  }
}
// `dweights` becomes the gradient of the scores. A token takes from all older ones.
template <class H, class Z, class P, class DP>
void break_stick_vjp(const H& history, const Z& scores, const P& powers, const P& weights,
                     DP& dweights) {
  using S = typename P::Scalar;
  S older = S(0);
  oldest_first(history, [&](Index i) {
    const S larger = S(1) / (S(1) + powers[i]), smaller = powers[i] * larger;
    const bool takes_most = real_part(S(scores[i])) > 0;  // σ(score) is the larger of both
    const S own = weights[i] * dweights[i];
    dweights[i] =
        takes_most ? S(own * smaller - older * larger) : S(own * larger - older * smaller);
    older += own;
  });
}

}  // namespace detail

//| `StickBreakingAttention` | keeps the last tokens | y = Σ p_i v_i, p_i = s_i Π (1 − s_l) over
//|   all l newer than i, s = σ(Kᵀq / √d_k): the newest take first, without an encoding of
//|   positions; strict, as published, a token does not see itself | 2 (d_k + d_v), 2
//|   exponentials and a logarithm a token kept |  | Tan et al. 2024, 2410.17980
/// Stick-breaking attention: from the newest token to the oldest, every token takes a share of what
/// the newer ones left of a stick of length 1. So it needs no encoding of positions.
///
///     y_t = Σ_{i≤t} p_i v_i     p_i = s_i Π_{i<l≤t} (1 − s_l)     s_i = σ(scale · k_i·q_t)
///
/// With `AttendCurrent` = false, as published, a token attends to those before it only, i, l < t: a
/// step reads first, and then writes. The weights add up to at most 1. What is left of the stick,
/// 1 − Σ p_i, is no output: if all values have a row of ones, that row of y is Σ p_i. The last
/// `capacity` tokens are kept. Reading an empty memory gives 0.
///
/// Shapes: k and q d_k, v and y d_v; state (d_k + d_v)·capacity. Cost per token: 2 (d_k + d_v)
/// flops, two exponentials and a logarithm for every token kept. Throws std::invalid_argument when
/// a size does not fit. Tan et al. 2024, arXiv 2410.17980.
template <class S, int Dk = Dynamic, int Dv = Dk, bool AttendCurrent = true>
class StickBreakingAttention {
 public:
  using Scalar = S;
  using Signature = KeyValue<Dk, Dv>;
  static constexpr std::string_view name = "StickBreakingAttention";
  static constexpr bool reads_first = !AttendCurrent;

  template <class C> struct State {
    TokenHistory<C, Dk, Dv> history;
    static constexpr auto names = fw::names("history");
  };
  using OwnedState = State<Owned<S>>;

  /// Throws std::invalid_argument when a size or the capacity is below 1.
  StickBreakingAttention(Sizes<Dk, Dv> sizes, AttentionOptions options)
      : signature_{{sizes.key_size, sizes.value_size}}, options_(options) {
    signature_.check(name);
    detail::check_size<Dynamic>(name, "capacity", options.capacity);
    scale_ = S(detail::attention_scale(options, sizes.key_size));
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index n = options_.capacity;
    return {{{signature_.dk, n}, {signature_.dv, n}, {}}};
  }
  template <class T> auto cast() const {
    return StickBreakingAttention<T, Dk, Dv, AttendCurrent>(signature_.sizes(), options_);
  }

  void write(OwnedState& s, const WriteToken<StickBreakingAttention>& t) const {
    detail::append(s.history, t.key, t.value);
  }
  void read(const OwnedState& s, const ReadToken<StickBreakingAttention>& t,
            OutToken<StickBreakingAttention> y) const {
    const Index n = detail::held(s.history);
    if (n == 0) return y.output.setZero(), void();
    scratch<S, Dynamic, 3>(n, [&](auto& scores, auto& powers, auto& weights) {
      detail::score(s.history, t.query, scale_, scores);
      detail::break_stick(s.history, scores, powers, weights);
      y.output.noalias() = s.history.values.leftCols(n) * weights;
    });
  }
  void write_vjp(const OwnedState& s, const WriteToken<StickBreakingAttention>&, OwnedState& ds,
                 WriteGradToken<StickBreakingAttention> dt) const {
    detail::append_vjp(s.history, ds.history, dt.key, dt.value);
  }
  void read_vjp(const OwnedState& s, const ReadToken<StickBreakingAttention>& t,
                const OutGradToken<StickBreakingAttention>& dy, OwnedState& ds,
                ReadGradToken<StickBreakingAttention> dt) const {
    const Index n = detail::held(s.history);
    if (n == 0) return;
    scratch<S, Dynamic, 4>(n, [&](auto& scores, auto& powers, auto& weights, auto& d) {
      detail::score(s.history, t.query, scale_, scores);
      detail::break_stick(s.history, scores, powers, weights);
      d.noalias() = s.history.values.leftCols(n).transpose() * dy.output;
      ds.history.values.leftCols(n).noalias() += dy.output * weights.transpose();
      detail::break_stick_vjp(s.history, scores, powers, weights, d);
      detail::score_vjp(s.history, t.query, scale_, d, ds.history, dt.query);
    });
  }

 private:
  Signature signature_;
  AttentionOptions options_;
  S scale_ = S(1);
};

}  // namespace fw
