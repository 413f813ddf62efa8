#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/math/decay.hpp>
#include <fastweights/memories/rules/normaliser.hpp>
#include <limits>
#include <string>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, α). Read (q, λ) with one weight per level.
template <int Dk, int Dv> struct KeyValueDecayLevels : KeyValueDecay<Dk, Dv> {
  /// L.
  Index levels = 1;

  template <class C> struct Read {
    vec<C, Dk> query;
    vec<C, Dynamic> scales;  ///< λ, one per level
    static constexpr auto names = fw::names("query", "scales");
    static constexpr auto roles = fw::roles(Role::key, Role::value);
  };
  Read<Extents> read() const { return {{this->dk, 1}, {levels, 1}}; }
};

//| `LogLinearAttention` | W_l = α W_l, with blocks of 1, 1, 2, 4, … past tokens in the levels l
//|   | y = Σ λ_l W_l q | 5 L d_v d_k |  | Guo et al. 2025, 2506.04761
/// Log-linear attention: gated linear attention whose past is cut into blocks of 1, 1, 2, 4, …
/// tokens, each with a matrix and a weight of its own.
///
///     W_l = Σ_{i: level(t, i) = l} (α_{i+1} ⋯ α_t) v_i k_iᵀ     y_t = Σ_l λ_{t,l} W_l q_t
///     level(t, t) = 0, level(t, i) = 1 + ⌊log₂(t xor i)⌋, positions from 0
///
/// A token t whose binary form ends in m zeros moves the matrices of levels 0 to m to level m + 1.
/// The last level keeps all older tokens, so that any number of tokens is right with fewer weights.
/// With λ = 1 it is GatedLinearAttention.
///
/// Shapes: W d_v×(d_k·L), with level l in columns l d_k to (l + 1) d_k − 1; k and q d_k, v and y
/// d_v, α 1, λ L. T tokens need L = 2 + ⌊log₂(T − 1)⌋ levels. Cost per token: about 5 L d_v d_k
/// flops. Throws std::invalid_argument when a size does not fit. Guo et al. 2025, arXiv 2506.04761.
template <class S, int Dk = Dynamic, int Dv = Dk> class LogLinearAttention {
 public:
  using Scalar = S;
  using Signature = KeyValueDecayLevels<Dk, Dv>;
  static constexpr std::string_view name = "LogLinearAttention";

  template <class C> struct State {
    mat<C, Dv, Dynamic> W;  ///< those of all levels side by side
    count<C> length;        ///< tokens written so far
    static constexpr auto names = fw::names("W", "length");
  };
  using OwnedState = State<Owned<S>>;

  /// `levels` matrices. Throws std::invalid_argument when a size or `levels` is below 1, or d_k·L
  /// is more than an Index holds.
  LogLinearAttention(Sizes<Dk, Dv> sizes, Index levels)
      : signature_{{{sizes.key_size, sizes.value_size}}, levels} {
    signature_.check(name);
    detail::check_size<Dynamic>(name, "the number of levels", levels);
    const Index most = std::numeric_limits<Index>::max() / signature_.dk;
    if (levels > most)
      detail::throw_invalid({name, ": the number of levels is ", std::to_string(levels),
                             ", expected at most ", std::to_string(most),
                             " for d_k = ", std::to_string(signature_.dk)});
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    return {{signature_.dv, signature_.dk * signature_.levels}, {}};
  }
  template <class T> auto cast() const {
    return LogLinearAttention<T, Dk, Dv>(signature_.sizes(), signature_.levels);
  }

  void write(OwnedState& s, const WriteToken<LogLinearAttention>& t) const {
    const Index merged = merged_level(s.length);
    for (Index l = 0; l < merged; ++l) {
      level(s.W, merged) += level(s.W, l);
      level(s.W, l).setZero();
    }
    s.W *= t.decay;
    level(s.W, 0).noalias() += t.value * t.key.transpose();
    ++s.length;
  }
  void read(const OwnedState& s, const ReadToken<LogLinearAttention>& t,
            OutToken<LogLinearAttention> y) const {
    scratch<S, Dynamic>(s.W.cols(), [&](auto& queries) {
      scale_queries(t, queries);
      y.output.noalias() = s.W * queries;
    });
  }
  void write_vjp(const OwnedState& s, const WriteToken<LogLinearAttention>& t, OwnedState& ds,
                 WriteGradToken<LogLinearAttention> dt) const {
    dt.value.noalias() += level(ds.W, 0) * t.key;
    dt.key.noalias() += level(ds.W, 0).transpose() * t.value;
    const Index merged = merged_level(s.length);
    for (Index l = 0; l < merged; ++l) level(ds.W, l) = level(ds.W, merged);
    dt.decay += s.W.cwiseProduct(ds.W).sum();
    ds.W *= t.decay;
  }
  void read_vjp(const OwnedState& s, const ReadToken<LogLinearAttention>& t,
                const OutGradToken<LogLinearAttention>& dy, OwnedState& ds,
                ReadGradToken<LogLinearAttention> dt) const {
    scratch<S, Dynamic, 2>(s.W.cols(), [&](auto& queries, auto& dqueries) {
      scale_queries(t, queries);
      dqueries.setZero();
      detail::product_vjp(s.W, queries, dy.output, ds.W, dqueries);
      for (Index l = 0; l < signature_.levels; ++l) {
        const auto dquery = dqueries.segment(l * signature_.dk, signature_.dk);
        dt.scales[l] += dquery.cwiseProduct(t.query).sum();
        dt.query += t.scales[l] * dquery;
      }
    });
  }

 private:
  // The level that takes the tokens of all lower ones, when token number `position` is written.
  Index merged_level(Index position) const {
    const auto bits = static_cast<std::uint64_t>(position);
    return std::min<Index>(std::countr_zero(bits) + 1, signature_.levels - 1);
  }
  template <class M> auto level(M& W, Index l) const {
    return W.middleCols(l * signature_.dk, signature_.dk);
  }
  template <class Q> void scale_queries(const ReadToken<LogLinearAttention>& t, Q& queries) const {
    for (Index l = 0; l < signature_.levels; ++l)
      queries.segment(l * signature_.dk, signature_.dk) = t.scales[l] * t.query;
  }

  Signature signature_;
};

}  // namespace fw
