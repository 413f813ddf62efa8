#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/memories/attention/token_history.hpp>
#include <fastweights/memories/rules/correction.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, w, β, α). Read q.
template <int Dk, int Dv> struct KeyValueReflection : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Dk> reflection;  ///< w, d_k rows
    num<C> beta;
    num<C> decay;
    static constexpr auto names = fw::names("key", "value", "reflection", "beta", "decay");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::key, Role::strength, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueReflection<NewDk, Dv>;

  Write<Extents> write() const {
    return {{this->dk, 1}, {this->dv, 1}, {this->dk, 1}, {1, 1}, {1, 1}};
  }
};

//| `PathAttention` | K = (I − β w wᵀ) K, then keeps k and v | as above | (6 d_k + 2 d_v) a
//|   token kept |  | Yang et al. 2025, 2505.16381
/// PaTH attention: every token reflects the keys of the past, so that a position is the product of
/// what lies between two tokens.
///
///     y_t = Σ_{i≤t} p_i v_i,   p = softmax of scale · (q_t·H_t ⋯ H_{i+1} k_i + Σ_{i<s≤t} log α_s)
///     H_s = I − β_s w_s w_sᵀ
///
/// A write multiplies the kept keys by H_t: K ← K − β w (wᵀK). The last `capacity` tokens are kept.
/// With β = 0 and scale 1 it is ForgettingAttention. Reading an empty memory gives 0.
///
/// Shapes: k, w and q d_k, v and y d_v, β and α 1; state (d_k + d_v + 1)·capacity. Cost per token:
/// 6 d_k + 2 d_v flops for every token kept. β is in [0, 2], α in (0, 1]; the gradient of α divides
/// by it. Keys do not grow for β‖w‖² ≤ 2: normalise w. Throws std::invalid_argument when a size
/// does not fit. Yang et al. 2025, arXiv 2505.16381.
template <class S, int Dk = Dynamic, int Dv = Dk> class PathAttention {
 public:
  using Scalar = S;
  using Signature = KeyValueReflection<Dk, Dv>;
  static constexpr std::string_view name = "PathAttention";

  template <class C> struct State {
    TokenHistory<C, Dk, Dv> history;
    vec<C, Dynamic> bias;  ///< Σ log α_s since the token
    static constexpr auto names = fw::names("history", "bias");
  };
  using OwnedState = State<Owned<S>>;

  /// Throws std::invalid_argument when a size or the capacity is below 1.
  PathAttention(Sizes<Dk, Dv> sizes, AttentionOptions options)
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
    return PathAttention<T, Dk, Dv>(signature_.sizes(), options_);
  }

  void write(OwnedState& s, const WriteToken<PathAttention>& t) const {
    const Index n = detail::held(s.history);
    auto keys = s.history.keys.leftCols(n);
    scratch<S, Dynamic>(n, [&](auto& along) {
      along.noalias() = keys.transpose() * t.reflection;
      along *= -t.beta;
      keys.noalias() += t.reflection * along.transpose();
    });
    detail::add_log_decay(s.history, s.bias, t.decay);
    detail::append(s.history, t.key, t.value);
  }
  Violation violation(const WriteToken<PathAttention>& t) const {
    return delta_violation(t.beta, t.reflection, "beta times the squared norm of reflection");
  }
  void read(const OwnedState& s, const ReadToken<PathAttention>& t,
            OutToken<PathAttention> y) const {
    detail::look_up(s.history, t.query, scale_, y.output, bias_of(s));
  }
  void write_vjp(const OwnedState& s, const WriteToken<PathAttention>& t, OwnedState& ds,
                 WriteGradToken<PathAttention> dt) const {
    const Index n = detail::held(s.history);
    detail::append_vjp(s.history, ds.history, dt.key, dt.value);
    detail::fade_vjp(s.history, ds.bias, t.decay, dt.decay);
    const auto keys = s.history.keys.leftCols(n);
    auto dkeys = ds.history.keys.leftCols(n);
    scratch<S, Dynamic, 2>(n, [&](auto& along, auto& dalong) {
      along.noalias() = keys.transpose() * t.reflection;
      dalong.noalias() = dkeys.transpose() * t.reflection;
      dt.beta -= detail::product_sum(along, dalong);
      along *= -t.beta;
      dalong *= -t.beta;
      dt.reflection.noalias() += dkeys * along;
      dt.reflection.noalias() += keys * dalong;
      dkeys.noalias() += t.reflection * dalong.transpose();
    });
  }
  void read_vjp(const OwnedState& s, const ReadToken<PathAttention>& t,
                const OutGradToken<PathAttention>& dy, OwnedState& ds,
                ReadGradToken<PathAttention> dt) const {
    detail::look_up_vjp(
        s.history, t.query, scale_, dy.output, ds.history, dt.query, bias_of(s),
        [&](const auto& dscores) { ds.bias.head(dscores.size()) += scale_ * dscores; });
  }

 private:
  auto bias_of(const OwnedState& s) const {
    return [&, this](auto& scores) { scores += scale_ * s.bias.head(scores.size()); };
  }

  Signature signature_;
  AttentionOptions options_;
  S scale_ = S(1);
};

}  // namespace fw
