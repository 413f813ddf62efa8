#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, β, α) with one decay per value row. Read q.
template <int Dk, int Dv> struct KeyValueBetaRowDecay : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> beta;
    vec<C, Dv> decay;
    static constexpr auto names = fw::names("key", "value", "beta", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueBetaRowDecay<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {this->dv, 1}}; }
};

//| `GatedOjaRule` | W = diag(α) W, then W += β v (k − Wᵀ v)ᵀ | y = W q | 7 d_v d_k |  | Oja
//|   1982
/// The gated Oja rule: a delta rule whose values look up keys, while value rows decay.
///
///     W̄_t = diag(α_t) W_{t−1}     W_t = W̄_t + β_t v_t (k_t − W̄_tᵀ v_t)ᵀ     y_t = W_t q_t
///
/// Its transpose is GatedDeltaRule with KeyValueBetaVectorDecay whose keys and values are swapped.
///
/// Shapes: W d_v×d_k, k and q d_k, v, y and α d_v, β 1. Cost per token: 7 d_v d_k flops. β ≥ 0.
/// Stable for β‖v‖² ≤ 2: normalise the values. A zero value writes nothing. Throws
/// std::invalid_argument when a size does not fit. Oja 1982; the gated form is that of
/// flash-linear-attention.
template <class S, int Dk = Dynamic, int Dv = Dk>
class GatedOjaRule : public MatrixRule<GatedOjaRule<S, Dk, Dv>, S, KeyValueBetaRowDecay<Dk, Dv>> {
  using Base = MatrixRule<GatedOjaRule<S, Dk, Dv>, S, KeyValueBetaRowDecay<Dk, Dv>>;

 public:
  using Base::Base;
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "GatedOjaRule";

  template <class T> auto cast() const {
    return GatedOjaRule<T, Dk, Dv>(Base::signature().sizes());
  }

  void write(OwnedState& s, const WriteToken<GatedOjaRule>& t) const {
    s.W.array().colwise() *= t.decay.array();
    scratch<S, Dk>(dk(), [&](auto& update) FASTWEIGHTS_INLINE_LAMBDA {
      update.noalias() = s.W.transpose() * t.value;
      update = t.beta * (t.key - update);
      s.W.noalias() += t.value * update.transpose();
    });
  }
  static constexpr bool key_bounds_strength = true;
  Violation violation(const WriteToken<GatedOjaRule>& t) const {
    return delta_violation(t.beta, t.value, "beta times the squared norm of value");
  }
  void write_vjp(const OwnedState& s, const WriteToken<GatedOjaRule>& t, OwnedState& ds,
                 WriteGradToken<GatedOjaRule> dt) const {
    scratch<S, Dk, 2>(dk(), [&](auto& error, auto& derror) {
      scratch<S, Dv>(dv(), [&](auto& along) {
        along = t.decay.cwiseProduct(t.value);
        error.noalias() = s.W.transpose() * along;  // W̄ᵀ v
        error = t.key - error;
        derror.noalias() = ds.W.transpose() * t.value;  // the gradient of the update
        dt.beta += detail::product_sum(error, derror);
        error *= t.beta;
        dt.value.noalias() += ds.W * error;
        derror *= t.beta;
        dt.key += derror;
        along.noalias() = s.W * derror;
        dt.value -= t.decay.cwiseProduct(along);
        ds.W.noalias() -= t.value * derror.transpose();  // the gradient of W̄
        dt.decay += s.W.cwiseProduct(ds.W).rowwise().sum();
        ds.W.array().colwise() *= t.decay.array();
      });
    });
  }
  /// By two kernels, for 256 tokens at a time. Wᵀ obeys a delta rule, whose scan gives the errors
  /// k − W̄ᵀ v. With the errors as keys, W is a gated linear attention.
  void scan(OwnedState& s, const WriteSequence<GatedOjaRule>& inputs,
            const ReadSequence<GatedOjaRule>& queries,
            OutSequence<GatedOjaRule> out) const requires detail::KernelScalar<S> {
    struct Buffer;
    constexpr Index block = 256;
    const Index total = queries.query.cols();
    S* const buffer = detail::thread_buffer<S, Buffer>(dk() * (dv() + std::min(block, total)));
    Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>> transposed(buffer, dk(), dv());
    const detail::Columns<S> errors{buffer + dk() * dv(), dk()};
    const auto columns = [](const auto& x, Index t) { return detail::columns_of(x).from(t); };
    for (Index t = 0; t < total; t += block) {
      const Index steps = std::min(block, total - t);
      const auto keys = columns(inputs.key, t), values = columns(inputs.value, t);
      const auto decays = columns(inputs.decay, t), beta = columns(inputs.beta, t);
      transposed = s.W.transpose();
      detail::scan_pairs<DecayKind::per_channel, Products::lookups>(
          transposed, static_cast<S*>(nullptr),
          detail::SequenceCorrections<S>{values, keys, values, decays, {}, steps, beta, errors});
      detail::scan_pairs<DecayKind::per_value_row, Products::queries>(
          s.W, static_cast<S*>(nullptr),
          detail::SequenceCorrections<S>{errors, values, columns(queries.query, t), decays,
                                         columns(out.output, t), steps, beta});
    }
  }

 private:
  using Base::dk, Base::dv;
};

}  // namespace fw
