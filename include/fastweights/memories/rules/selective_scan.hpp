#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/kernels/scan/row_scan.hpp>
#include <fastweights/kernels/simd/exponential.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <utility>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, δ) with one step size per value row, before its softplus. Read (q, v, z) with a
/// gate z.
template <int Dk, int Dv> struct KeyValueStep : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Dv> step;  ///< δ, before the softplus
    static constexpr auto names = fw::names("key", "value", "step");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::value);
  };
  template <class C> struct Read {
    vec<C, Dk> query;
    vec<C, Dv> value;
    vec<C, Dv> gate;
    static constexpr auto names = fw::names("query", "value", "gate");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::value);
  };
  template <int NewDk> using with_keys_of = KeyValueStep<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {this->dv, 1}}; }
  Read<Extents> read() const { return {{this->dk, 1}, {this->dv, 1}, {this->dv, 1}}; }
};

namespace detail {

/// The tokens of SelectiveScan, for scan_rows over W and A.
template <class S> struct SelectiveTokens : RowTokens<S> {
  Columns<const S> values, steps;
  const S* bias;

  template <class Column> struct Write {
    Column step, update;  // Δ and Δ ∘ v

    Write(const SelectiveTokens& x, Index t, const Column&, const Panel<S>& rows) {
      Eigen::Array<S, Column::size, 1> all = Eigen::Array<S, Column::size, 1>::Zero();
      for (Index i = 0; i < rows.rows; ++i)
        all[i] = x.steps(t)[rows.first + i] + x.bias[rows.first + i];
      all = softplus_of(all).eval();
      step = Column::load(all.data());
      update = load_part<Column>(x.values(t) + rows.first, 0, rows.rows);
      update.scale(step);
    }
    EIGEN_ALWAYS_INLINE void operator()(Column& w, Column& A, S key) const {
      Column decay = A;
      decay.scale(step);
      exponentiate(decay);
      w.scale(decay);
      w.add(update, key);
    }
  };
};

}  // namespace detail

//| `SelectiveScan` | W = exp(Δ A) ⊙ W + (Δ ⊙ v) kᵀ, Δ = softplus(δ + b), as in Mamba | y = (W q
//|   + D ⊙ v) ⊙ silu(z) | 6 d_v d_k and as many exponentials |  | Gu & Dao 2023, 2312.00752
/// The selective scan of Mamba: every entry of W has its own decay, from the step size of its row
/// and a matrix A of slow weights.
///
///     Δ_t = softplus(δ_t + b)
///     W_t = exp(Δ_t A) ⊙ W_{t−1} + (Δ_t ⊙ v_t) k_tᵀ       exp(Δ A)_ij = exp(Δ_i A_ij)
///     y_t = (W_t q_t + D ⊙ v_t) ⊙ silu(z_t)
///
/// In the paper v is u, k is B and q is C.
///
/// Shapes: W and A d_v×d_k, k and q d_k, v, δ, z, b, D and y d_v. A, D (`skip`) and b
/// (`step_bias`) are slow weights of the state; the initial state has A_ij = −j (from 1), D = 1 and
/// b = 0. Cost per token: 6 d_v d_k flops and d_v d_k exponentials. Stable for A ≤ 0, whatever the
/// token. Throws std::invalid_argument when a size does not fit. Gu & Dao 2023, arXiv 2312.00752,
/// algorithm 2.
template <class S, int Dk = Dynamic, int Dv = Dk> class SelectiveScan {
 public:
  using Scalar = S;
  using Signature = KeyValueStep<Dk, Dv>;
  static constexpr std::string_view name = "SelectiveScan";

  template <class C> struct Slow {
    mat<C, Dv, Dk> A;      ///< negative for a decay, d_v×d_k
    vec<C, Dv> skip;       ///< D
    vec<C, Dv> step_bias;  ///< b
    static constexpr auto names = fw::names("A", "skip", "step_bias");
  };
  template <class C> struct State {
    mat<C, Dv, Dk> W;
    Slow<C> slow;
    static constexpr auto names = fw::names("W", "slow");
  };
  using OwnedState = State<Owned<S>>;

  explicit SelectiveScan(Sizes<Dk, Dv> sizes = {})
      : signature_{{sizes.key_size, sizes.value_size}} {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index dv = signature_.dv, dk = signature_.dk;
    return {{dv, dk}, {{dv, dk}, {dv, 1}, {dv, 1}}};
  }
  OwnedState initial_state() const {
    auto s = detail::zeros<OwnedState>(state_extents());
    for (Index j = 0; j < signature_.dk; ++j) s.slow.A.col(j).setConstant(S(-double(j + 1)));
    s.slow.skip.setOnes();
    return s;
  }
  template <class T> auto cast() const { return SelectiveScan<T, Dk, Dv>(signature_.sizes()); }

  void write(OwnedState& s, const WriteToken<SelectiveScan>& t) const {
    scratch<S, Dv, 2>(signature_.dv, [&](auto& step, auto& update) FASTWEIGHTS_INLINE_LAMBDA {
      set_step(s, t, step);
      update = step.cwiseProduct(t.value);
      for (Index j = 0; j < signature_.dk; ++j) {
        s.W.col(j).array() *= (step.array() * s.slow.A.col(j).array()).exp();
        s.W.col(j) += t.key[j] * update;
      }
    });
  }
  void read(const OwnedState& s, const ReadToken<SelectiveScan>& t,
            OutToken<SelectiveScan> y) const {
    detail::set_product_with_vector(y.output, s.W, t.query);
    finish_read(s, t, y);
  }
  void write_vjp(const OwnedState& s, const WriteToken<SelectiveScan>& t, OwnedState& ds,
                 WriteGradToken<SelectiveScan> dt) const {
    scratch<S, Dv, 3>(signature_.dv, [&](auto& step, auto& dstep, auto& along) {
      set_step(s, t, step);
      along.noalias() = ds.W * t.key;  // the gradient of Δ ⊙ v
      dt.value += step.cwiseProduct(along);
      dstep = t.value.cwiseProduct(along);
      along = step.cwiseProduct(t.value);
      dt.key.noalias() += ds.W.transpose() * along;
      for (Index j = 0; j < signature_.dk; ++j) {
        const auto A = s.slow.A.col(j);
        ds.W.col(j).array() *= (step.array() * A.array()).exp();
        along = ds.W.col(j).cwiseProduct(s.W.col(j));  // the gradient of Δ ⊙ A
        dstep += along.cwiseProduct(A);
        ds.slow.A.col(j) += along.cwiseProduct(step);
      }
      for (Index i = 0; i < step.size(); ++i) {
        const S d = dstep[i] * Sigmoid().value(S(t.step[i] + s.slow.step_bias[i]));
        dt.step[i] += d;
        ds.slow.step_bias[i] += d;
      }
    });
  }
  void read_vjp(const OwnedState& s, const ReadToken<SelectiveScan>& t,
                const OutGradToken<SelectiveScan>& dy, OwnedState& ds,
                ReadGradToken<SelectiveScan> dt) const {
    scratch<S, Dv>(signature_.dv, [&](auto& sum) {
      sum.noalias() = s.W * t.query;
      sum += s.slow.skip.cwiseProduct(t.value);
      detail::silu_gate_vjp(t.gate, dy.output, sum, dt.gate);
      dt.value += s.slow.skip.cwiseProduct(sum);
      ds.slow.skip += t.value.cwiseProduct(sum);
      detail::product_vjp(s.W, t.query, sum, ds.W, dt.query);
    });
  }

  void scan(OwnedState& s, const WriteSequence<SelectiveScan>& inputs,
            const ReadSequence<SelectiveScan>& queries,
            OutSequence<SelectiveScan> out) const requires detail::KernelScalar<S> {
    using detail::columns_of, detail::row_tokens;
    const Index total = queries.query.cols();
    detail::scan_rows(detail::SelectiveTokens<S>{row_tokens<SelectiveScan>(inputs, queries, out),
                                                 columns_of(inputs.value), columns_of(inputs.step),
                                                 s.slow.step_bias.data()},
                      total, s.W, std::as_const(s.slow.A));
    for (Index t = 0; t < total; ++t)
      finish_read(s, detail::token_at<ReadToken<SelectiveScan>>(queries, signature_.read(), t),
                  detail::token_at<OutToken<SelectiveScan>>(out, signature_.out(), t));
  }

 private:
  // y = W q becomes (y + D ⊙ v) ⊙ silu(z).
  static void finish_read(const OwnedState& s, const ReadToken<SelectiveScan>& t,
                          OutToken<SelectiveScan> y) {
    y.output += s.slow.skip.cwiseProduct(t.value);
    detail::multiply_by_silu(t.gate, y.output);
  }
  // Δ
  template <class Step>
  static void set_step(const OwnedState& s, const WriteToken<SelectiveScan>& t, Step& step) {
    if constexpr (detail::KernelScalar<S>)
      step.array() = detail::softplus_of(t.step.array() + s.slow.step_bias.array());
    else
      for (Index i = 0; i < step.size(); ++i)
        step[i] = detail::softplus(S(t.step[i] + s.slow.step_bias[i]));
  }

  Signature signature_;
};

}  // namespace fw
