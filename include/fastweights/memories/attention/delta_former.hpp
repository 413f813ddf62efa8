#pragma once

#include <fastweights/memories/attention/token_history.hpp>
#include <fastweights/memories/rules/correction.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, β, q): the query says what the memory already holds. Read q.
template <int Dk, int Dv> struct KeyValueBetaQuery : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> beta;
    vec<C, Dk> query;
    static constexpr auto names = fw::names("key", "value", "beta", "query");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength, Role::key);
  };
  template <int NewDk> using with_keys_of = KeyValueBetaQuery<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {this->dk, 1}}; }
};

//| `DeltaFormer` | keeps k and u = v − β U softmax(Kᵀq / √d_k) | y = U softmax(Kᵀq / √d_k) | 4
//|   (d_k + d_v) a token kept |  | Zhong et al. 2025, 2505.19488
/// DeltaFormer: a delta rule whose memory is softmax attention. It keeps the difference to what the
/// past already answers.
///
///     u_t = v_t − β_t Σ_{i<t} p_i u_i,   p = softmax over i < t of scale · k_i·q_t
///     y_t = Σ_{i≤t} p′_i u_i,            p′ = softmax over i ≤ t of the same
///
/// With β = 0 it is KeyValueCache that slides. The last `capacity` tokens are kept. Reading an
/// empty memory gives 0.
///
/// Shapes: k and q d_k, v and y d_v, β 1; state (d_k + d_v)·capacity. Cost per token:
/// 4 (d_k + d_v) flops for every token kept. β is in [0, 2]; u is bounded for β < 1. Throws
/// std::invalid_argument when a size does not fit. Zhong et al. 2025, arXiv 2505.19488.
template <class S, int Dk = Dynamic, int Dv = Dk> class DeltaFormer {
 public:
  using Scalar = S;
  using Signature = KeyValueBetaQuery<Dk, Dv>;
  static constexpr std::string_view name = "DeltaFormer";

  /// The values of the history are u.
  template <class C> struct State {
    TokenHistory<C, Dk, Dv> history;
    static constexpr auto names = fw::names("history");
  };
  using OwnedState = State<Owned<S>>;

  /// Throws std::invalid_argument when a size or the capacity is below 1.
  DeltaFormer(Sizes<Dk, Dv> sizes, AttentionOptions options)
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
    return DeltaFormer<T, Dk, Dv>(signature_.sizes(), options_);
  }

  void write(OwnedState& s, const WriteToken<DeltaFormer>& t) const {
    scratch<S, Dv>(signature_.dv, [&](auto& update) {
      detail::look_up(s.history, t.query, scale_, update);
      update = t.value - t.beta * update;
      detail::append(s.history, t.key, update);
    });
  }
  void read(const OwnedState& s, const ReadToken<DeltaFormer>& t, OutToken<DeltaFormer> y) const {
    detail::look_up(s.history, t.query, scale_, y.output);
  }
  void write_vjp(const OwnedState& s, const WriteToken<DeltaFormer>& t, OwnedState& ds,
                 WriteGradToken<DeltaFormer> dt) const {
    scratch<S, Dv, 2>(signature_.dv, [&](auto& retrieved, auto& dupdate) {
      dupdate.setZero();
      detail::append_vjp(s.history, ds.history, dt.key, dupdate);
      dt.value += dupdate;
      detail::look_up(s.history, t.query, scale_, retrieved);
      dt.beta -= detail::product_sum(retrieved, dupdate);
      dupdate *= -t.beta;
      detail::look_up_vjp(s.history, t.query, scale_, dupdate, ds.history, dt.query);
    });
  }
  void read_vjp(const OwnedState& s, const ReadToken<DeltaFormer>& t,
                const OutGradToken<DeltaFormer>& dy, OwnedState& ds,
                ReadGradToken<DeltaFormer> dt) const {
    detail::look_up_vjp(s.history, t.query, scale_, dy.output, ds.history, dt.query);
  }

 private:
  Signature signature_;
  AttentionOptions options_;
  S scale_ = S(1);
};

}  // namespace fw
