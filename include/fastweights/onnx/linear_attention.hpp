#pragma once

#include <cmath>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/math/parallel_for.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/onnx/tensor.hpp>
#include <limits>

/// \file
/// The operator LinearAttention of ONNX (opset 27). Every head has a state S of d_k×d_v:
///
///     linear        S_t = S_{t−1} + k_t v_tᵀ
///     gated         S_t = diag(e^{g_t}) S_{t−1} + k_t v_tᵀ
///     delta         S_t = S_{t−1} + β_t k_t (v_t − S_{t−1}ᵀ k_t)ᵀ
///     gated_delta   S̄ = diag(e^{g_t}) S_{t−1}     S_t = S̄ + β_t k_t (v_t − S̄ᵀ k_t)ᵀ
///
///     o_t = scale · S_tᵀ q_t
///
///     fw::onnx::linear_attention<float>(
///         {.q_num_heads = 8, .kv_num_heads = 4, .update_rule = "gated_delta"},
///         {.query = {q, {B, T, 8 * d_k}},
///          .key = {k, {B, T, 4 * d_k}},
///          .value = {v, {B, T, 4 * d_v}},
///          .decay = {g, {B, T, 4}},
///          .beta = {beta, {B, T, 4}},
///          .output = {o, {B, T, 8 * d_v}},
///          .present_state = {s, {B, 4, d_k, d_v}}});
///
/// Source: ONNX, Operators.md, LinearAttention.

namespace fw::inline FASTWEIGHTS_ABI {
namespace onnx {

/// The attributes; a scale of 0 means 1/√d_k. There is no `chunk_size`: it is a hint, and changes
/// no output.
struct LinearAttention {
  /// The heads of the queries; those of keys and values.
  Index q_num_heads = 1, kv_num_heads = 1;
  double scale = 0;                              ///< the factor of the outputs; 0: 1/√d_k
  std::string_view update_rule = "gated_delta";  ///< linear, gated, delta or gated_delta
};

/// The inputs and outputs. H_q is a multiple of H_kv: heads h H_q/H_kv … of the queries read the
/// state of head h. g (`decay`) has one number per head or per key row. Rules without a decay or
/// without a β take none.
template <class S> struct LinearAttentionTensors {
  Tensor<const S, 3> query;            ///< [B, T, H_q d_k]
  Tensor<const S, 3> key;              ///< [B, T, H_kv d_k]
  Tensor<const S, 3> value;            ///< [B, T, H_kv d_v]
  Tensor<const S, 4> past_state = {};  ///< [B, H_kv, d_k, d_v]; 0 if absent
  Tensor<const S, 3> decay = {};       ///< [B, T, H_kv] or [B, T, H_kv d_k]
  Tensor<const S, 3> beta = {};        ///< [B, T, H_kv] or [B, T, 1]
  Tensor<S, 3> output = {};            ///< [B, T, H_q d_v]
  Tensor<S, 4> present_state = {};     ///< [B, H_kv, d_k, d_v]; may be past_state, or absent
};

}  // namespace onnx

namespace detail {

template <class S> class LinearAttentionOperator {
 public:
  using Tensors = onnx::LinearAttentionTensors<S>;

  LinearAttentionOperator(const onnx::LinearAttention& op, const Tensors& x) : op_(op), x_(x) {
    const std::string_view rule = op.update_rule;
    delta_ = rule == "delta" || rule == "gated_delta";
    gated_ = rule == "gated" || rule == "gated_delta";
    if (!delta_ && !gated_ && rule != "linear")
      fail({"update_rule is ", rule, ", expected linear, gated, delta or gated_delta"});
    check_heads();
    check_tensors();
  }

  void run(bool parallel) const {
    // Without tokens and states no tensor has entries, so nothing bounds the number of heads.
    if (steps_ == 0 && x_.present_state.data == nullptr) return;
    parallel_for(batch_ * op_.kv_num_heads, parallel,
                 [&](Index i) { run_head(i / op_.kv_num_heads, i % op_.kv_num_heads); });
  }

 private:
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  // A row-major [B, T, H d] is a column-major matrix with a column per token.
  using Sequence = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;
  using ConstSequence = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
  static constexpr std::string_view name = "onnx::LinearAttention";

  [[noreturn]] static void fail(std::initializer_list<std::string_view> parts) {
    std::string text;
    for (const std::string_view part : parts) text += part;
    throw_invalid({name, ": ", text});
  }
  static void fail_size(std::string_view what, Index given, std::string_view expected, Index of) {
    fail({what, " is ", std::to_string(given), ", expected ", expected, std::to_string(of)});
  }

  void check_heads() {
    const Index hq = op_.q_num_heads, hkv = op_.kv_num_heads;
    if (hkv < 1) fail_size("kv_num_heads", hkv, "at least ", 1);
    if (hq < 1 || hq % hkv != 0) fail_size("q_num_heads", hq, "a multiple of ", hkv);
    batch_ = x_.query.shape[0];
    steps_ = x_.query.shape[1];
    dk_ = x_.query.shape[2] / hq;
    dv_ = x_.value.shape[2] / hkv;
    if (batch_ < 0) fail_size("query's first size", batch_, "at least ", 0);
    if (steps_ < 0) fail_size("query's second size", steps_, "at least ", 0);
    if (dk_ < 1) fail_size("query's last size", x_.query.shape[2], "at least q_num_heads, ", hq);
    if (dv_ < 1) fail_size("value's last size", x_.value.shape[2], "at least kv_num_heads, ", hkv);
    const Index most = std::numeric_limits<Index>::max() / hq;  // hq·dv is the output's last size
    if (dv_ > most) fail_size("d_v", dv_, "at most ", most);
  }
  void check_tensors() {
    const Index hq = op_.q_num_heads, hkv = op_.kv_num_heads;
    const auto packed = [&](Index size) { return std::array<Index, 3>{batch_, steps_, size}; };
    const std::array<Index, 4> state{batch_, hkv, dk_, dv_};
    check_tensor(name, "query", x_.query, packed(hq * dk_));
    check_tensor(name, "key", x_.key, packed(hkv * dk_));
    check_tensor(name, "value", x_.value, packed(hkv * dv_));
    check_tensor(name, "output", x_.output, packed(hq * dv_));
    check_presence("decay", x_.decay, gated_);
    check_presence("beta", x_.beta, delta_);
    if (gated_) check_tensor(name, "decay", x_.decay, packed(hkv), packed(hkv * dk_));
    if (delta_) check_tensor(name, "beta", x_.beta, packed(hkv), packed(1));
    if (x_.past_state.data != nullptr) check_tensor(name, "past_state", x_.past_state, state);
    if (x_.present_state.data != nullptr)
      check_tensor(name, "present_state", x_.present_state, state);
  }
  // A tensor without entries may have no data.
  void check_presence(std::string_view tensor, const onnx::Tensor<const S, 3>& x,
                      bool wanted) const {
    const bool given = x.data != nullptr || x.shape != std::array<Index, 3>{};
    if (given && !wanted) fail({"update_rule ", op_.update_rule, " takes no ", tensor});
    if (!given && wanted) fail({"update_rule ", op_.update_rule, " needs ", tensor});
  }

  // The entries of head h in batch b of a tensor whose heads have `rows` entries per token.
  template <class Map, class T> Map head(const T& x, Index b, Index h, Index rows) const {
    const Index stride = x.shape[2];
    return Map(x.data + b * steps_ * stride + h * rows, rows, steps_, Eigen::OuterStride<>(stride));
  }

  void run_head(Index b, Index h) const {
    const auto key = head<ConstSequence>(x_.key, b, h, dk_);
    const auto value = head<ConstSequence>(x_.value, b, h, dv_);
    const auto scan = [&](const auto& memory, const auto&... coefficients) {
      scan_head(memory, b, h, {key, value, coefficients...});
    };
    const auto with_decays = [&](const auto& f) {
      const Index rows = x_.decay.shape[2] / op_.kv_num_heads;
      const Matrix decays = head<ConstSequence>(x_.decay, b, h, rows).array().exp();
      f(decays, rows == dk_);
    };
    const Sizes<Dynamic, Dynamic> sizes{dk_, dv_};
    if (!delta_ && !gated_) return scan(fw::LinearAttention<S>(sizes));
    if (!delta_)
      return with_decays([&](const Matrix& decays, bool per_row) {
        if (per_row)
          scan(GatedLinearAttention<S>(sizes), decays);
        else
          scan(GatedLinearAttention<S, Dynamic, Dynamic, KeyValueDecay>(sizes), decays);
      });
    const Index beta_head = x_.beta.shape[2] == 1 ? 0 : h;
    const auto beta = head<ConstSequence>(x_.beta, b, beta_head, 1);
    if (!gated_) return scan(DeltaRule<S>(sizes), beta);
    with_decays([&](const Matrix& decays, bool per_row) {
      if (per_row)
        scan(GatedDeltaRule<S, Dynamic, Dynamic, KeyValueBetaVectorDecay>(sizes), beta, decays);
      else
        scan(GatedDeltaRule<S>(sizes), beta, decays);
    });
  }

  // Every query head scans its own copy of the state.
  template <class M>
  void scan_head(const M& memory, Index b, Index h, const WriteSequence<M>& inputs) const {
    const Index group = op_.q_num_heads / op_.kv_num_heads, size = dk_ * dv_;
    const Index place = (b * op_.kv_num_heads + h) * size;  // S is row-major: W = Sᵀ column-major
    auto start = initial_state(memory);
    if (x_.past_state.data != nullptr)
      start.W = Eigen::Map<const Matrix>(x_.past_state.data + place, dv_, dk_);
    auto state = start;
    for (Index g = 0; g < group; ++g) {
      state = start;
      auto output = head<Sequence>(x_.output, b, h * group + g, dv_);
      fw::scan(memory, state, inputs, {head<ConstSequence>(x_.query, b, h * group + g, dk_)},
               {output});
      output *= scale();
    }
    if (x_.present_state.data != nullptr)
      Eigen::Map<Matrix>(x_.present_state.data + place, dv_, dk_) = state.W;
  }
  S scale() const {
    return static_cast<S>(op_.scale == 0 ? 1 / std::sqrt(static_cast<double>(dk_)) : op_.scale);
  }

  const onnx::LinearAttention& op_;
  const Tensors& x_;
  bool delta_ = false, gated_ = false;
  Index batch_ = 0, steps_ = 0, dk_ = 0, dv_ = 0;
};

}  // namespace detail

namespace onnx {

/// Computes the operator for float or double; convert 16-bit tensors first. With `parallel` the
/// heads run in parallel, if the program is compiled with OpenMP. Costs a scan per query head, and
/// allocates the states and decays of a call. Throws std::invalid_argument, which names the tensor
/// or attribute, before it writes anything.
template <class S>
void linear_attention(const LinearAttention& attributes, const LinearAttentionTensors<S>& tensors,
                      bool parallel = false) {
  detail::LinearAttentionOperator<S>(attributes, tensors).run(parallel);
}

}  // namespace onnx
}  // namespace fw
