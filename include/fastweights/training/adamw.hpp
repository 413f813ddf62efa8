#pragma once

#include <cmath>
#include <fastweights/layers/parameters.hpp>
#include <stdexcept>

namespace fw::inline FASTWEIGHTS_ABI {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double clip = 0;  ///< upper limit for the norm of the whole gradient; 0: no clipping
};

namespace detail {

template <class S> double gradient_norm(const Object& grad) {
  double sum = 0;
  visit_parameters<S>(std::array{grad}, [&](const Leaf* g) {
    sum += static_cast<double>(g->entries<S>().square().sum());
  });
  return std::sqrt(sum);
}

// The models of one step of AdamW, with the same parameters.
struct AdamWModels {
  Object model, grad, first, second;
};

// One step of AdamW; see there. `steps` counts this step unless it throws.
template <class S>
double adamw_step(const AdamWModels& m, const AdamWOptions& o, long long& steps, double rate) {
  check_same_shapes("AdamW", m.first, "model", m.model);
  check_same_shapes("AdamW", m.first, "grad", m.grad);
  const double norm = gradient_norm<S>(m.grad);
  if (!std::isfinite(norm))
    raise<std::runtime_error>("AdamW: the gradient's norm is " + std::to_string(norm) +
                              " at step " + std::to_string(steps + 1));
  const auto t = static_cast<double>(++steps);
  const double bias1 = 1 - std::pow(o.beta1, t), bias2 = 1 - std::pow(o.beta2, t);
  const double clip_scale = o.clip > 0 && norm > o.clip ? o.clip / norm : 1;
  visit_parameters<S>(std::array{m.model, m.grad, m.first, m.second}, [&](const Leaf* leaves) {
    auto p = leaves[0].entries<S>(), g = leaves[1].entries<S>();
    auto first = leaves[2].entries<S>(), second = leaves[3].entries<S>();
    first = S(o.beta1) * first + S((1 - o.beta1) * clip_scale) * g;
    second = S(o.beta2) * second + S((1 - o.beta2) * clip_scale * clip_scale) * g.square();
    if (!leaves[0].is_vector()) p *= S(1 - rate * o.weight_decay);
    p -= S(rate / bias1) * first / ((second * S(1 / bias2)).sqrt() + S(o.epsilon));
  });
  return norm;
}

}  // namespace detail

/// √Σg² over all entries of a gradient.
template <Record Model> double gradient_norm(const Model& grad) {
  return detail::gradient_norm<detail::ParameterScalar<Model>>(detail::object(grad));
}

/// Adam with decoupled weight decay and clipping by the global norm. g is the clipped gradient, r
/// the learning rate, and t counts steps from 1:
///
///     m = β₁ m + (1 − β₁) g        v = β₂ v + (1 − β₂) g²
///     p ← p − r λ p − r (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)
///
/// For vectors (biases, the weights of norms) λ is 0. The two moments are models themselves. To
/// resume training, save `first`, `second` and the step count, as examples/char_lm.cpp does.
/// Loshchilov, Hutter 2017, arXiv 1711.05101, algorithm 2 with λ scaled by the learning rate, as
/// PyTorch does; clipping: Pascanu, Mikolov, Bengio 2012, arXiv 1211.5063, algorithm 1.
template <Record Model> struct AdamW {
  Model first;   ///< m, the first moment
  Model second;  ///< v, the second moment
  long long steps = 0;
  AdamWOptions options;
  static constexpr auto names = fw::names("first", "second", "steps", "options");

  explicit AdamW(const Model& model, AdamWOptions settings = {})
      : first(model), second(model), options(settings) {
    set_zero_parameters(first);
    set_zero_parameters(second);
  }

  /// One step. Returns the norm of the gradient before clipping. Throws std::runtime_error if that
  /// norm is not finite, and std::invalid_argument if shapes differ; nothing is changed then.
  double step(Model& model, const Model& grad, double learning_rate) {
    return detail::adamw_step<detail::ParameterScalar<Model>>(
        {detail::object(model), detail::object(grad), detail::object(first),
         detail::object(second)},
        options, steps, learning_rate);
  }
};

}  // namespace fw
