#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/kernels/scan/row_scan.hpp>
#include <fastweights/memories/rules/correction.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, p, η, μ, β, α): a key to write to and a key p to look up. Read q.
template <int Dk, int Dv> struct KeyValueLookupMomentum : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Dk> lookup;  ///< p, d_k rows
    num<C> rate;        ///< η, of the error in the momentum
    num<C> momentum;    ///< μ, the momentum's decay
    num<C> beta;        ///< of the momentum in W
    num<C> decay;
    static constexpr auto names =
        fw::names("key", "value", "lookup", "rate", "momentum", "beta", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::key, Role::strength,
                                            Role::decay, Role::strength, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueLookupMomentum<NewDk, Dv>;

  Write<Extents> write() const {
    const MemberExtent key{this->dk, 1}, one{1, 1};
    return {key, {this->dv, 1}, key, one, one, one, one};
  }
};

namespace detail {

/// The tokens of MomentumDeltaRule, for scan_rows.
template <class S> struct MomentumDeltaTokens : RowTokens<S> {
  static constexpr bool has_lookups = true;
  Columns<const S> values, lookups, rates, momenta, betas, decays;

  const S* lookup(Index t) const { return lookups(t); }

  template <class Column> struct Write {
    Column update;
    S momentum, beta, decay;

    Write(const MomentumDeltaTokens& x, Index t, const Column& retrieved, const Panel<S>& rows)
        : update(load_part<Column>(x.values(t) + rows.first, 0, rows.rows)),
          momentum(*x.momenta(t)),
          beta(*x.betas(t)),
          decay(*x.decays(t)) {
      update.subtract(retrieved);
      update.scale(-*x.rates(t));
    }
    EIGEN_ALWAYS_INLINE void operator()(Column& w, Column& m, S key) const {
      m.scale(momentum);
      m.add(update, key);
      w.scale(decay);
      w.add(m, -beta);
    }
  };
};

}  // namespace detail

/// Momentum DeltaNet: the errors of a look-up go into a momentum M, and W follows it.
///
///     M_t = μ_t M_{t−1} + η_t (W_{t−1} p_t − v_t) k_tᵀ
///     W_t = α_t W_{t−1} − β_t M_t     y_t = W_t q_t
///
/// The paper takes p = k. With μ = 0 it is Comba with the strength β η.
///
/// Shapes: W and M d_v×d_k, k, p and q d_k, v and y d_v, η, μ, β and α 1. Cost per token: 9 d_v d_k
/// flops. μ and α are in [0, 1]. With p = k and constant numbers it is stable for β η‖k‖² ≤ (1 + α)
/// (1 + μ): normalise the keys. Throws std::invalid_argument when a size does not fit. arXiv
/// 2605.05838.
template <class S, int Dk = Dynamic, int Dv = Dk> class MomentumDeltaRule {
 public:
  using Scalar = S;
  using Signature = KeyValueLookupMomentum<Dk, Dv>;
  static constexpr std::string_view name = "MomentumDeltaRule";

  template <class C> struct State {
    mat<C, Dv, Dk> W;
    mat<C, Dv, Dk> momentum;  ///< M
    static constexpr auto names = fw::names("W", "momentum");
  };
  using OwnedState = State<Owned<S>>;

  explicit MomentumDeltaRule(Sizes<Dk, Dv> sizes = {})
      : signature_{{sizes.key_size, sizes.value_size}} {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const MemberExtent W{signature_.dv, signature_.dk};
    return {W, W};
  }
  template <class T> auto cast() const { return MomentumDeltaRule<T, Dk, Dv>(signature_.sizes()); }

  void write(OwnedState& s, const WriteToken<MomentumDeltaRule>& t) const {
    scratch<S, Dv>(signature_.dv, [&](auto& update) FASTWEIGHTS_INLINE_LAMBDA {
      update.noalias() = s.W * t.lookup;
      update = t.rate * (update - t.value);
      detail::decay_and_add(s.momentum, t.momentum, update, t.key);
      s.W = t.decay * s.W - t.beta * s.momentum;
    });
  }
  void read(const OwnedState& s, const ReadToken<MomentumDeltaRule>& t,
            OutToken<MomentumDeltaRule> y) const {
    detail::set_product_with_vector(y.output, s.W, t.query);
  }
  void write_vjp(const OwnedState& s, const WriteToken<MomentumDeltaRule>& t, OwnedState& ds,
                 WriteGradToken<MomentumDeltaRule> dt) const {
    scratch<S, Dv, 2>(signature_.dv, [&](auto& error, auto& derror) {
      error.noalias() = s.W * t.lookup;
      error -= t.value;
      derror.noalias() = ds.W * t.key;
      // M_t = μ M + η e kᵀ is not computed
      dt.beta -= t.momentum * detail::product_sum(s.momentum, ds.W) +
                 t.rate * detail::product_sum(error, derror);
      dt.decay += detail::product_sum(s.W, ds.W);
      ds.momentum -= t.beta * ds.W;  // the gradient of M_t
      dt.momentum += detail::product_sum(s.momentum, ds.momentum);
      derror.noalias() = ds.momentum * t.key;  // over η, the gradient of the error
      dt.rate += detail::product_sum(error, derror);
      error *= t.rate;
      derror *= t.rate;
      dt.key.noalias() += ds.momentum.transpose() * error;
      dt.value -= derror;
      dt.lookup.noalias() += s.W.transpose() * derror;
      ds.W *= t.decay;
      ds.W.noalias() += derror * t.lookup.transpose();
      ds.momentum *= t.momentum;
    });
  }
  void read_vjp(const OwnedState& s, const ReadToken<MomentumDeltaRule>& t,
                const OutGradToken<MomentumDeltaRule>& dy, OwnedState& ds,
                ReadGradToken<MomentumDeltaRule> dt) const {
    detail::product_vjp(s.W, t.query, dy.output, ds.W, dt.query);
  }

  void scan(OwnedState& s, const WriteSequence<MomentumDeltaRule>& inputs,
            const ReadSequence<MomentumDeltaRule>& queries,
            OutSequence<MomentumDeltaRule> out) const requires detail::KernelScalar<S> {
    using detail::columns_of, detail::row_tokens;
    detail::scan_rows(
        detail::MomentumDeltaTokens<S>{row_tokens<MomentumDeltaRule>(inputs, queries, out),
                                       columns_of(inputs.value), columns_of(inputs.lookup),
                                       columns_of(inputs.rate), columns_of(inputs.momentum),
                                       columns_of(inputs.beta), columns_of(inputs.decay)},
        queries.query.cols(), s.W, s.momentum);
  }

 private:
  Signature signature_;
};

}  // namespace fw
