#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/kernels/scan/row_scan.hpp>
#include <fastweights/memories/rules/correction.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, θ, η, α): the rate of the gradient, the decay of the momentum, and how much is
/// forgotten. Read q.
template <int Dk, int Dv> struct KeyValueMomentum : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> rate;      ///< θ
    num<C> momentum;  ///< η
    num<C> forget;    ///< α, how much of W is forgotten
    static constexpr auto names = fw::names("key", "value", "rate", "momentum", "forget");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::strength, Role::decay, Role::strength);
  };
  template <int NewDk> using with_keys_of = KeyValueMomentum<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {1, 1}, {1, 1}}; }
};

namespace detail {

/// The tokens of TitansMemory, for scan_rows.
template <class S> struct TitansTokens : RowTokens<S> {
  static constexpr bool has_lookups = true;
  Columns<const S> values, rates, momenta, forgets;

  template <class Column> struct Write {
    Column update;
    S momentum, keep;

    Write(const TitansTokens& x, Index t, const Column& retrieved, const Panel<S>& rows)
        : update(load_part<Column>(x.values(t) + rows.first, 0, rows.rows)),
          momentum(*x.momenta(t)),
          keep(S(1) - *x.forgets(t)) {
      update.subtract(retrieved);
      update.scale(S(2) * *x.rates(t));
    }
    EIGEN_ALWAYS_INLINE void operator()(Column& w, Column& s, S key) const {
      s.scale(momentum);
      s.add(update, key);
      Column sum = s;
      sum.add(w, keep);
      w = sum;
    }
  };
};

}  // namespace detail

/// The linear memory of Titans: gradient descent on ‖W k − v‖² with momentum S and forgetting.
///
///     S_t = η_t S_{t−1} − 2 θ_t (W_{t−1} k_t − v_t) k_tᵀ     W_t = (1 − α_t) W_{t−1} + S_t
///     y_t = W_t q_t
///
/// With η = 0 and α = 0 it is the delta rule with β = 2θ.
///
/// Shapes: W and S d_v×d_k, k and q d_k, v and y d_v, θ, η and α 1. Cost per token: 9 d_v d_k
/// flops. θ and α are in [0, 1], η in [0, 1]. Stable for θ‖k‖² ≤ (1 − α/2) (1 + η), if they are
/// constant: normalise the keys. Throws std::invalid_argument when a size does not fit. Behrouz,
/// Zhong, Mirrokni 2025, arXiv 2501.00663, eq. 11–15.
template <class S, int Dk = Dynamic, int Dv = Dk> class TitansMemory {
 public:
  using Scalar = S;
  using Signature = KeyValueMomentum<Dk, Dv>;
  static constexpr std::string_view name = "TitansMemory";

  template <class C> struct State {
    mat<C, Dv, Dk> W;
    mat<C, Dv, Dk> momentum;  ///< S
    static constexpr auto names = fw::names("W", "momentum");
  };
  using OwnedState = State<Owned<S>>;

  explicit TitansMemory(Sizes<Dk, Dv> sizes = {}) : signature_{{sizes.key_size, sizes.value_size}} {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const MemberExtent W{signature_.dv, signature_.dk};
    return {W, W};
  }
  template <class T> auto cast() const { return TitansMemory<T, Dk, Dv>(signature_.sizes()); }

  void write(OwnedState& s, const WriteToken<TitansMemory>& t) const {
    scratch<S, Dv>(signature_.dv, [&](auto& update) FASTWEIGHTS_INLINE_LAMBDA {
      update.noalias() = s.W * t.key;
      update = S(2) * t.rate * (t.value - update);
      detail::decay_and_add(s.momentum, t.momentum, update, t.key);
      s.W = (S(1) - t.forget) * s.W + s.momentum;
    });
  }
  Violation violation(const WriteToken<TitansMemory>& t) const {
    const double forget = detail::largest_strength(t.forget);
    if (forget > 1) return {"forget", forget, "0 to 1"};
    const double limit = (1 - forget / 2) * (1 + detail::largest_strength(t.momentum));
    return delta_violation(
        2 * detail::largest_strength(t.rate) / limit, t.key,
        "2 rate / ((1 - forget / 2) (1 + momentum)) times the squared norm of key");
  }
  void read(const OwnedState& s, const ReadToken<TitansMemory>& t, OutToken<TitansMemory> y) const {
    detail::set_product_with_vector(y.output, s.W, t.query);
  }
  void write_vjp(const OwnedState& s, const WriteToken<TitansMemory>& t, OwnedState& ds,
                 WriteGradToken<TitansMemory> dt) const {
    ds.momentum += ds.W;  // the gradient of S_t
    dt.forget -= s.W.cwiseProduct(ds.W).sum();
    dt.momentum += s.momentum.cwiseProduct(ds.momentum).sum();
    scratch<S, Dv, 2>(signature_.dv, [&](auto& error, auto& derror) {
      error.noalias() = s.W * t.key;
      error = t.value - error;
      derror.noalias() = ds.momentum * t.key;  // the gradient of the update
      dt.rate += S(2) * detail::product_sum(error, derror);
      error *= S(2) * t.rate;
      dt.key.noalias() += ds.momentum.transpose() * error;
      derror *= S(2) * t.rate;
      dt.value += derror;
      dt.key.noalias() -= s.W.transpose() * derror;
      ds.W *= S(1) - t.forget;
      ds.W.noalias() -= derror * t.key.transpose();
    });
    ds.momentum *= t.momentum;
  }
  void read_vjp(const OwnedState& s, const ReadToken<TitansMemory>& t,
                const OutGradToken<TitansMemory>& dy, OwnedState& ds,
                ReadGradToken<TitansMemory> dt) const {
    detail::product_vjp(s.W, t.query, dy.output, ds.W, dt.query);
  }

  void scan(OwnedState& s, const WriteSequence<TitansMemory>& inputs,
            const ReadSequence<TitansMemory>& queries,
            OutSequence<TitansMemory> out) const requires detail::KernelScalar<S> {
    using detail::columns_of, detail::row_tokens;
    detail::scan_rows(
        detail::TitansTokens<S>{row_tokens<TitansMemory>(inputs, queries, out),
                                columns_of(inputs.value), columns_of(inputs.rate),
                                columns_of(inputs.momentum), columns_of(inputs.forget)},
        queries.query.cols(), s.W, s.momentum);
  }

 private:
  Signature signature_;
};

}  // namespace fw
