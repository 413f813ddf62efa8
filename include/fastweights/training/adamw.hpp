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
  double clip = 0;  ///< largest norm of the whole gradient; 0: no clipping
};

/// √Σg² over all parameters of a gradient.
template <Record Model> double gradient_norm(const Model& grad) {
  double sum = 0;
  detail::visit_parameters(
      [&](const auto& g) { sum += static_cast<double>(g.array().square().sum()); }, grad);
  return std::sqrt(sum);
}

/// Adam with decoupled weight decay and clipping by the global norm. With g the clipped gradient,
/// t the number of the step from 1 and r the learning rate:
///
///     m = β₁ m + (1 − β₁) g        v = β₂ v + (1 − β₂) g²
///     p ← p − r λ p − r (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)
///
/// Vectors (biases, the weights of norms) do not decay: λ = 0 for them. The two moments are models
/// themselves and, with the step count, all that a checkpoint has to save.
/// Loshchilov, Hutter 2017, arXiv 1711.05101, algorithm 2 with λ scaled by the learning rate, as
/// PyTorch does; clipping: Pascanu, Mikolov, Bengio 2012, arXiv 1211.5063, algorithm 1.
template <Record Model> struct AdamW {
  Model first;   ///< m
  Model second;  ///< v
  long long steps = 0;
  AdamWOptions options;
  static constexpr auto names = fw::names("first", "second", "steps", "options");

  explicit AdamW(const Model& model, AdamWOptions settings = {})
      : first(model), second(model), options(settings) {
    set_zero_parameters(first);
    set_zero_parameters(second);
  }

  /// One step. Returns the norm of the gradient before clipping. Throws std::runtime_error when
  /// that is not finite and std::invalid_argument when shapes differ, with nothing changed.
  double step(Model& model, const Model& grad, double learning_rate) {
    detail::check_same_shapes("AdamW", first, "model", model);
    detail::check_same_shapes("AdamW", first, "grad", grad);
    const double norm = gradient_norm(grad);
    if (!std::isfinite(norm))
      throw std::runtime_error("AdamW: the gradient's norm is " + std::to_string(norm) +
                               " at step " + std::to_string(steps + 1));
    ++steps;
    const double shrink = options.clip > 0 && norm > options.clip ? options.clip / norm : 1;
    detail::visit_parameters(
        [&](auto& p, const auto& g, auto& m, auto& v) {
          update(p.array(), g.array(), m.array(), v.array(), shrink, learning_rate);
        },
        model, grad, first, second);
    return norm;
  }

 private:
  template <class P, class G, class Moment>
  void update(P p, const G& g, Moment m, Moment v, double shrink, double rate) const {
    using S = typename P::Scalar;
    const auto t = static_cast<double>(steps);
    const double bias1 = 1 - std::pow(options.beta1, t);
    const double bias2 = 1 - std::pow(options.beta2, t);
    const bool decays = !P::IsVectorAtCompileTime;
    m = S(options.beta1) * m + S((1 - options.beta1) * shrink) * g;
    v = S(options.beta2) * v + S((1 - options.beta2) * shrink * shrink) * g.square();
    if (decays) p *= S(1 - rate * options.weight_decay);
    p -= S(rate / bias1) * m / ((v * S(1 / bias2)).sqrt() + S(options.epsilon));
  }
};

}  // namespace fw
