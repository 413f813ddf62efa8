#pragma once

#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/memories/attention/token_history.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `ForgettingAttention` | keeps the last tokens, and Σ log α since each | y = V softmax(Kᵀq /
//|   √d_k + Σ log α) | 2 (d_k + d_v) a token kept |  | Lin et al. 2025, 2503.02130
/// Softmax attention with a forget gate (FoX): scores fade as the weights of gated linear attention
/// do.
///
///     y_t = Σ_{i≤t} p_i v_i,   p = softmax of scale · k_i·q_t + Σ_{i<s≤t} log α_s
///
/// With α = 1 it is KeyValueCache that slides. The last `capacity` tokens are kept. Reading an
/// empty memory gives 0.
///
/// Shapes: k and q d_k, v and y d_v, α 1; state (d_k + d_v + 1)·capacity. Cost per token:
/// 2 (d_k + d_v) flops for every token kept. α is in (0, 1]; its gradient divides by α. Throws
/// std::invalid_argument when a size does not fit. Lin et al. 2025, arXiv 2503.02130.
template <class S, int Dk = Dynamic, int Dv = Dk> class ForgettingAttention {
 public:
  using Scalar = S;
  using Signature = KeyValueDecay<Dk, Dv>;
  static constexpr std::string_view name = "ForgettingAttention";

  template <class C> struct State {
    TokenHistory<C, Dk, Dv> history;
    vec<C, Dynamic> bias;  ///< Σ log α_s since the token
    static constexpr auto names = fw::names("history", "bias");
  };
  using OwnedState = State<Owned<S>>;

  /// Throws std::invalid_argument when a size or the capacity is below 1.
  ForgettingAttention(Sizes<Dk, Dv> sizes, AttentionOptions options)
      : signature_{{sizes.key_size, sizes.value_size}}, options_(options) {
    signature_.check(name);
    detail::check_size<Dynamic>(name, "capacity", options.capacity);
    scale_ = S(detail::attention_scale(options, sizes.key_size));
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index n = options_.capacity;
    return {{{signature_.dk, n}, {signature_.dv, n}, {}}, {n, 1}};
  }
  template <class T> auto cast() const {
    return ForgettingAttention<T, Dk, Dv>(signature_.sizes(), options_);
  }

  void write(OwnedState& s, const WriteToken<ForgettingAttention>& t) const {
    detail::add_log_decay(s.history, s.bias, t.decay);
    detail::append(s.history, t.key, t.value);
  }
  void read(const OwnedState& s, const ReadToken<ForgettingAttention>& t,
            OutToken<ForgettingAttention> y) const {
    detail::look_up(s.history, t.query, scale_, y.output, bias_of(s));
  }
  void write_vjp(const OwnedState& s, const WriteToken<ForgettingAttention>& t, OwnedState& ds,
                 WriteGradToken<ForgettingAttention> dt) const {
    detail::append_vjp(s.history, ds.history, dt.key, dt.value);
    detail::fade_vjp(s.history, ds.bias, t.decay, dt.decay);
  }
  void read_vjp(const OwnedState& s, const ReadToken<ForgettingAttention>& t,
                const OutGradToken<ForgettingAttention>& dy, OwnedState& ds,
                ReadGradToken<ForgettingAttention> dt) const {
    detail::look_up_vjp(s.history, t.query, scale_, dy.output, ds.history, dt.query, bias_of(s),
                        [&](const auto& dscores) { ds.bias.head(dscores.size()) += dscores; });
  }

 private:
  auto bias_of(const OwnedState& s) const {
    return [&](auto& scores) { scores += s.bias.head(scores.size()); };
  }

  Signature signature_;
  AttentionOptions options_;
  S scale_ = S(1);
};

}  // namespace fw
