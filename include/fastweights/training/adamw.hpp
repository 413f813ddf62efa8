#pragma once

#include <cmath>
#include <fastweights/layers/parameters.hpp>
#include <stdexcept>

namespace fw {

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

// One step of AdamW on a parameter, its gradient and its two moments.
struct AdamWStep {
  double beta1, beta2, bias1, bias2, clip_scale, rate, weight_decay, epsilon;

  template <class S> void update(const Leaf* leaves) const {
    auto p = leaves[0].entries<S>(), g = leaves[1].entries<S>();
    auto m = leaves[2].entries<S>(), v = leaves[3].entries<S>();
    m = S(beta1) * m + S((1 - beta1) * clip_scale) * g;
    v = S(beta2) * v + S((1 - beta2) * clip_scale * clip_scale) * g.square();
    if (!leaves[0].is_vector()) p *= S(1 - rate * weight_decay);
    p -= S(rate / bias1) * m / ((v * S(1 / bias2)).sqrt() + S(epsilon));
  }
};

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
    detail::check_same_shapes("AdamW", first, "model", model);
    detail::check_same_shapes("AdamW", first, "grad", grad);
    const double norm = gradient_norm(grad);
    if (!std::isfinite(norm))
      throw std::runtime_error("AdamW: the gradient's norm is " + std::to_string(norm) +
                               " at step " + std::to_string(steps + 1));
    ++steps;
    const double clip_scale = options.clip > 0 && norm > options.clip ? options.clip / norm : 1;
    update({detail::object(model), detail::object(grad), detail::object(first),
            detail::object(second)},
           clip_scale, learning_rate);
    return norm;
  }

 private:
  void update(const std::array<detail::Object, 4>& records, double clip_scale, double rate) const {
    const auto t = static_cast<double>(steps);
    const detail::AdamWStep step{options.beta1,
                                 options.beta2,
                                 1 - std::pow(options.beta1, t),
                                 1 - std::pow(options.beta2, t),
                                 clip_scale,
                                 rate,
                                 options.weight_decay,
                                 options.epsilon};
    using S = detail::ParameterScalar<Model>;
    detail::visit_parameters<S>(records,
                                [&](const detail::Leaf* leaves) { step.update<S>(leaves); });
  }
};

}  // namespace fw
