#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/math/decay.hpp>
#include <fastweights/math/softmax.hpp>
#include <fastweights/memories/rules/normaliser.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, s, α) with one write strength and one decay per slot. Read q.
template <int Dk, int Dv, int Slots> struct KeyValueSlots : QueryOutput<Dk, Dv> {
  /// M.
  Index slots = Slots;

  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Slots> strength;  ///< s, one per slot
    vec<C, Slots> decay;     ///< α, one per slot
    static constexpr auto names = fw::names("key", "value", "strength", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength, Role::decay);
  };

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {slots, 1}, {slots, 1}}; }
};

//| `GatedSlotAttention` | K = diag(α) K + s kᵀ, V = V diag(α) + v sᵀ, with M slots | y = V
//|   softmax(K q) | 5 M (d_k + d_v) |  | Zhang et al. 2024, 2409.07146
/// Gated slot attention: softmax attention over M slots. Keys and values are written to slots that
/// decay.
///
///     K_t = diag(α_t) K_{t−1} + s_t k_tᵀ      V_t = V_{t−1} diag(α_t) + v_t s_tᵀ
///     y_t = V_t softmax(K_t q_t)
///
/// These are two gated linear attentions with a softmax between them. The paper has s = 1 − α. With
/// α = 1 it is attention with bounded memory control (ABC). q is usually divided by √d_k first.
///
/// Shapes: K M×d_k, V d_v×M, k and q d_k, v and y d_v, s and α M. Cost per token: 5 M (d_k + d_v)
/// flops. s is in [0, 2]. Softmax takes scores of any finite size. Throws std::invalid_argument
/// when a size does not fit. Zhang et al. 2024, arXiv 2409.07146; ABC: Peng et al. 2021,
/// arXiv 2110.02488.
template <class S, int Dk = Dynamic, int Dv = Dk, int Slots = Dynamic> class GatedSlotAttention {
 public:
  using Scalar = S;
  using Signature = KeyValueSlots<Dk, Dv, Slots>;
  static constexpr std::string_view name = "GatedSlotAttention";

  template <class C> struct State {
    mat<C, Slots, Dk> keys;    ///< K
    mat<C, Dv, Slots> values;  ///< V
    static constexpr auto names = fw::names("keys", "values");
  };
  using OwnedState = State<Owned<S>>;

  explicit GatedSlotAttention(Sizes<Dk, Dv> sizes = {}, Index slots = Slots)
      : signature_{{sizes.key_size, sizes.value_size}, slots} {
    signature_.check(name);
    detail::check_size<Slots>(name, "the number of slots", slots);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    return {{signature_.slots, signature_.dk}, {signature_.dv, signature_.slots}};
  }
  template <class T> auto cast() const {
    return GatedSlotAttention<T, Dk, Dv, Slots>(signature_.sizes(), signature_.slots);
  }

  void write(OwnedState& s, const WriteToken<GatedSlotAttention>& t) const {
    s.keys.array().colwise() *= t.decay.array();
    s.keys.noalias() += t.strength * t.key.transpose();
    detail::apply_decay(s.values, t.decay);
    s.values.noalias() += t.value * t.strength.transpose();
  }
  void read(const OwnedState& s, const ReadToken<GatedSlotAttention>& t,
            OutToken<GatedSlotAttention> y) const {
    scratch<S, Slots>(signature_.slots, [&](auto& weights) {
      weights.noalias() = s.keys * t.query;
      detail::softmax_in_place(weights);
      y.output.noalias() = s.values * weights;
    });
  }
  void write_vjp(const OwnedState& s, const WriteToken<GatedSlotAttention>& t, OwnedState& ds,
                 WriteGradToken<GatedSlotAttention> dt) const {
    dt.strength.noalias() += ds.keys * t.key;
    dt.key.noalias() += ds.keys.transpose() * t.strength;
    dt.decay += s.keys.cwiseProduct(ds.keys).rowwise().sum();
    ds.keys.array().colwise() *= t.decay.array();
    dt.value.noalias() += ds.values * t.strength;
    dt.strength.noalias() += ds.values.transpose() * t.value;
    detail::apply_decay_vjp(s.values, t.decay, ds.values, dt.decay);
  }
  void read_vjp(const OwnedState& s, const ReadToken<GatedSlotAttention>& t,
                const OutGradToken<GatedSlotAttention>& dy, OwnedState& ds,
                ReadGradToken<GatedSlotAttention> dt) const {
    scratch<S, Slots, 2>(signature_.slots, [&](auto& weights, auto& dweights) {
      weights.noalias() = s.keys * t.query;
      detail::softmax_in_place(weights);
      dweights.setZero();
      detail::product_vjp(s.values, weights, dy.output, ds.values, dweights);
      detail::softmax_vjp_in_place(weights, dweights);
      detail::product_vjp(s.keys, t.query, dweights, ds.keys, dt.query);
    });
  }

  /// Both matrices by the kernels, for 256 tokens at a time.
  void scan(OwnedState& s, const WriteSequence<GatedSlotAttention>& inputs,
            const ReadSequence<GatedSlotAttention>& queries,
            OutSequence<GatedSlotAttention> out) const requires detail::KernelScalar<S> {
    constexpr Index block = 256;
    const Index total = queries.query.cols();
    S* const buffer =
        detail::thread_buffer<S, GatedSlotAttention>(signature_.slots * std::min(block, total));
    const detail::Columns<S> weights{buffer, signature_.slots};
    const auto columns = [](const auto& x, Index t) { return detail::columns_of(x).from(t); };
    for (Index t = 0; t < total; t += block) {
      const Index steps = std::min(block, total - t);
      const auto slots = columns(inputs.strength, t), decays = columns(inputs.decay, t);
      detail::scan_pairs<DecayKind::per_value_row, Products::queries>(
          s.keys, static_cast<S*>(nullptr),
          detail::SequenceCorrections<S>{columns(inputs.key, t), slots, columns(queries.query, t),
                                         decays, weights, steps});
      for (Index i = 0; i < steps; ++i) {
        Eigen::Map<Eigen::Matrix<S, Slots, 1>> column(weights(i), signature_.slots);
        detail::softmax_in_place(column);
      }
      detail::scan_pairs<DecayKind::per_channel, Products::queries>(
          s.values, static_cast<S*>(nullptr),
          detail::SequenceCorrections<S>{slots, columns(inputs.value, t), weights, decays,
                                         columns(out.output, t), steps});
    }
  }

 private:
  Signature signature_;
};

}  // namespace fw
