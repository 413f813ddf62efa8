#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/kernels/scan/row_scan.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Form of Longhorn's forgetting.
enum class LonghornForm {
  exact,    ///< a delta rule: I − δ k kᵀ for every value row
  diagonal  ///< as published code: 1 − δ k_j² for every entry
};

namespace detail {

/// The tokens of diagonal Longhorn, for scan_rows.
template <class S> struct LonghornTokens : RowTokens<S> {
  Columns<const S> values, betas;
  Index key_size;
  S squares[row_scan_batch] = {};  // ‖k‖² of a batch

  void prepare(Index first, Index count) {
    for (Index i = 0; i < count; ++i)
      dot_products({this->key(first + i)}, {this->key(first + i)}, key_size, squares + i);
  }

  template <class Column> struct Write {
    Column step, value;  // −δ and −v

    Write(const LonghornTokens& x, Index t, const Column&, const Panel<S>& rows) {
      const S square = x.squares[t % row_scan_batch];
      value = load_part<Column>(x.values(t) + rows.first, 0, rows.rows);
      value.scale(S(-1));
      S beta[Column::size];
      load_part<Column>(x.betas(t) + rows.first, 0, rows.rows).store(beta);
      for (S& each : beta) each = -each / (S(1) + square * each);
      step = Column::load(beta);
    }
    // w −= (δ k) (k w − v): no product overflows where those of `write` do not.
    EIGEN_ALWAYS_INLINE void operator()(Column& w, S key) const {
      Column gain = step, change = value;
      gain.scale(key);
      change.add(w, key);
      w.add(gain, change);
    }
  };
};

}  // namespace detail

//| `Longhorn` | W = (1 − δ (k ⊙ k)ᵀ) ⊙ W + (δ ⊙ v) kᵀ, δ = β / (1 + β‖k‖²) | y = W q | 7 d_v
//|   d_k |  | Liu et al. 2024, 2407.14207
/// Longhorn: the implicit step of online regression, stable for any key. β is the strength of a
/// value row.
///
///     δ_t = β_t / (1 + β_t ‖k_t‖²)        (per value row)
///     exact:     W_t = W_{t−1} + δ_t ⊙ (v_t − W_{t−1} k_t) k_tᵀ
///     diagonal:  W_t = (1 − δ_t (k_t ⊙ k_t)ᵀ) ⊙ W_{t−1} + (δ_t ⊙ v_t) k_tᵀ     y_t = W_t q_t
///
/// Shapes: W d_v×d_k, k and q d_k, v, y and β d_v. Cost per token: 7 d_v d_k flops, exact 6.
/// β is at least 0. A zero key writes nothing. Throws std::invalid_argument when a size does not
/// fit. Liu et al. 2024, arXiv 2407.14207, eq. 8–10.
template <class S, int Dk = Dynamic, int Dv = Dk, LonghornForm form = LonghornForm::diagonal>
class Longhorn : public MatrixRule<Longhorn<S, Dk, Dv, form>, S, KeyValueVectorBeta<Dk, Dv>> {
  using Base = MatrixRule<Longhorn<S, Dk, Dv, form>, S, KeyValueVectorBeta<Dk, Dv>>;

 public:
  using Base::Base;
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "Longhorn";
  static constexpr auto decay_kind = detail::DecayKind::none;
  static constexpr bool has_delta_term = true, kernel_backward = form == LonghornForm::exact;
  static constexpr bool row_strengths = true;
  static constexpr Index key_buffers = 0, value_buffers = 1;

  template <class T> auto cast() const {
    return Longhorn<T, Dk, Dv, form>(Base::signature().sizes());
  }

  void write(OwnedState& s, const WriteToken<Longhorn>& t) const {
    with_step(t, [&](const auto& step) FASTWEIGHTS_INLINE_LAMBDA {
      if constexpr (form == LonghornForm::exact) {
        detail::correct<Dv>(s.W, t.key, t.value, step, S(1), t.key);
      } else {
        for (Index j = 0; j < dk(); ++j) {
          const S k = t.key[j];
          s.W.col(j) += step.cwiseProduct(k * t.value - (k * k) * s.W.col(j));
        }
      }
    });
  }
  void write_vjp(const OwnedState& s, const WriteToken<Longhorn>& t, OwnedState& ds,
                 WriteGradToken<Longhorn> dt) const {
    if constexpr (form == LonghornForm::exact)
      Base::write_vjp(s, t, ds, dt);
    else
      diagonal_vjp(s, t, ds, dt);
  }
  void scan(OwnedState& s, const WriteSequence<Longhorn>& inputs,
            const ReadSequence<Longhorn>& queries, OutSequence<Longhorn> out) const
      requires(form == LonghornForm::diagonal && detail::KernelScalar<S>) {
    using detail::columns_of, detail::row_tokens;
    detail::scan_rows(
        detail::LonghornTokens<S>{row_tokens<Longhorn>(inputs, queries, out),
                                  columns_of(inputs.value), columns_of(inputs.beta), dk()},
        queries.query.cols(), s.W);
  }

  /// The kernels' correction of a token.
  template <class StateLike>
  void correction(StateLike&, const WriteToken<Longhorn>& t, const ReadToken<Longhorn>&, Index,
                  S* buffer, detail::Correction<S>& c) const requires(form == LonghornForm::exact) {
    Eigen::Map<Eigen::Array<S, Dv, 1>> step(buffer, dv());
    step = t.beta.array() / (S(1) + detail::product_sum(t.key, t.key) * t.beta.array());
    c.betas = step.data();
  }
  void correction_vjp(const OwnedState&, const WriteToken<Longhorn>& t, Index,
                      const detail::CorrectionGradient<S>& g, OwnedState&,
                      WriteGradToken<Longhorn>& dt) const requires(form == LonghornForm::exact) {
    detail::add_gradient(dt.key, g.key);
    detail::add_gradient(dt.key, g.lookup);
    detail::add_gradient(dt.value, g.value);
    if (g.update == nullptr) return;
    with_step(t, [&](const auto& step) {
      scratch<S, Dv>(dv(), [&](auto& dstep) {
        dstep.setZero();
        detail::add_strength_gradient(dstep, g);
        add_step_gradient(t, step, dstep, dt);
      });
    });
  }

 private:
  using Base::dk, Base::dv;

  // δ
  template <class F> void with_step(const WriteToken<Longhorn>& t, const F& f) const {
    scratch<S, Dv>(dv(), [&](auto& step) FASTWEIGHTS_INLINE_LAMBDA {
      const S square = detail::product_sum(t.key, t.key);
      step.array() = t.beta.array() / (S(1) + square * t.beta.array());
      f(step);
    });
  }
  // dδ/dβ = δ²/β² and dδ/d‖k‖² = −δ²
  template <class D, class DD>
  void add_step_gradient(const WriteToken<Longhorn>& t, const D& step, const DD& dstep,
                         WriteGradToken<Longhorn>& dt) const {
    const S square = detail::product_sum(t.key, t.key);
    dt.key -= (S(2) * detail::product_sum(step.cwiseProduct(step), dstep)) * t.key;
    dt.beta.array() += dstep.array() / (S(1) + square * t.beta.array()).square();
  }
  void diagonal_vjp(const OwnedState& s, const WriteToken<Longhorn>& t, OwnedState& ds,
                    WriteGradToken<Longhorn>& dt) const {
    with_step(t, [&](const auto& step) {
      scratch<S, Dv>(dv(), [&](auto& dstep) {
        dstep.setZero();
        for (Index j = 0; j < dk(); ++j) {
          const S k = t.key[j];
          auto dw = ds.W.col(j);
          const auto w = s.W.col(j);
          dstep += dw.cwiseProduct(k * t.value - (k * k) * w);
          dt.value += k * dw.cwiseProduct(step);
          dt.key[j] += dw.cwiseProduct(step).cwiseProduct(t.value - (S(2) * k) * w).sum();
          dw -= (k * k) * step.cwiseProduct(dw);
        }
        add_step_gradient(t, step, dstep, dt);
      });
    });
  }
};

}  // namespace fw
