#pragma once

#include <cmath>
#include <fastweights/core/finite.hpp>
#include <fastweights/layers/parameters.hpp>
#include <functional>
#include <string_view>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI {

/// Treatment of a parameter by AdamW. Without weight_decay it has none, whatever the options say.
struct ParameterGroup {
  double rate = 1;          ///< factor of the learning rate, at least 0; 0: the parameter stays
  double weight_decay = 0;  ///< at least 0
};

/// All numbers are finite.
struct AdamWOptions {
  double beta1 = 0.9;          ///< in [0, 1)
  double beta2 = 0.999;        ///< in [0, 1)
  double epsilon = 1e-8;       ///< above 0 in the model's scalar type
  double weight_decay = 0.01;  ///< at least 0
  double clip = 0;             ///< upper limit for the norm of the whole gradient; 0: no clipping
  bool accept_zero_model = false;  ///< train a model whose weight matrices are all 0
  /// The group of a parameter, by its path, such as "blocks.0.norm1.weight", and by what it is: a
  /// vector (a bias, the weight of a norm) or a matrix. It replaces weight_decay. Without it all
  /// matrices have weight_decay, and vectors none.
  std::function<ParameterGroup(std::string_view path, bool is_vector)> group = {};
};

namespace detail {

// √Σg² of finite entries whose squares overflow.
template <class S> double scaled_gradient_norm(const Object& grad) {
  double largest = 0, sum = 0;
  visit_parameters<S>(std::array{grad}, [&](const Leaf* g) {
    if (g->size() > 0)
      largest = std::max(largest, static_cast<double>(g->entries<S>().abs().maxCoeff()));
  });
  visit_parameters<S>(std::array{grad}, [&](const Leaf* g) {
    sum += (g->entries<S>().template cast<double>() / largest).square().sum();
  });
  return largest * std::sqrt(sum);
}

template <class S> double gradient_norm(const Object& grad) {
  double sum = 0;
  visit_parameters<S>(std::array{grad}, [&](const Leaf* g) {
    sum += static_cast<double>(g->entries<S>().square().sum());
  });
  if (!is_finite(sum) && all_finite(grad)) return scaled_gradient_norm<S>(grad);
  return std::sqrt(sum);
}

// The models of one step of AdamW, with the same parameters.
struct AdamWModels {
  Object model, grad, first, second;
};

// The positive numbers of the model's scalar type.
struct AdamWRange {
  double smallest, largest;
};
template <class S> constexpr AdamWRange adamw_range() {
  using Limits = std::numeric_limits<S>;
  return {static_cast<double>(Limits::min()), static_cast<double>(Limits::max())};
}

// The group of every parameter, or none without AdamWOptions::group. Throws for one out of range.
std::vector<ParameterGroup> adamw_groups(const AdamWOptions& o, const Object& model, double rate,
                                         const AdamWRange& range);
void check_adamw_step(const AdamWOptions& o, long long steps, double rate, const AdamWRange& range);
// Throws std::runtime_error, which names a parameter, unless the norm of `grad` is finite.
void check_adamw_norm(double norm, const Object& grad, long long step);
// Throws if all weight matrices are 0. Norms start at 1, biases and other vectors may start at 0.
void check_initialised(const Object& model);

// The factor of the gradient: before the moments and, again, in them. A factor in the second moment
// is squared, which must not underflow; neither may g² overflow.
struct AdamWScale {
  double before = 1, within = 1;  // `before` is applied twice
};
template <class S> AdamWScale adamw_scale(double norm, double clip) {
  const double limit = std::sqrt(adamw_range<S>().largest) / 2;
  const double upper = clip > 0 ? std::min(clip, limit) : limit;
  const double scale = norm > upper ? upper / norm : 1;
  if (norm > limit || scale < 1e-12) return {std::sqrt(scale), 1};
  return {1, scale};
}

// One step of AdamW; see there. `steps` counts this step unless it throws.
template <class S>
double adamw_step(const AdamWModels& m, const AdamWOptions& o, long long& steps, double rate) {
  check_adamw_step(o, steps, rate, adamw_range<S>());
  check_same_shapes("AdamW", m.first, "model", m.model);
  check_same_shapes("AdamW", m.first, "grad", m.grad);
  if (steps == 0 && !o.accept_zero_model) check_initialised(m.model);
  const std::vector<ParameterGroup> groups = adamw_groups(o, m.model, rate, adamw_range<S>());
  const double norm = gradient_norm<S>(m.grad);
  check_adamw_norm(norm, m.grad, steps + 1);
  const auto t = static_cast<double>(++steps);
  const double bias1 = 1 - std::pow(o.beta1, t), bias2 = 1 - std::pow(o.beta2, t);
  const AdamWScale clipped = adamw_scale<S>(norm, o.clip);
  const S before = S(clipped.before);
  const double scale = clipped.within;
  std::size_t at = 0;
  visit_parameters<S>(std::array{m.model, m.grad, m.first, m.second}, [&](const Leaf* leaves) {
    const ParameterGroup group = groups.empty()
                                     ? ParameterGroup{1, leaves[0].is_vector() ? 0 : o.weight_decay}
                                     : groups[at++];
    auto p = leaves[0].entries<S>();
    const auto g = leaves[1].entries<S>() * before * before;
    auto first = leaves[2].entries<S>(), second = leaves[3].entries<S>();
    first = S(o.beta1) * first + S((1 - o.beta1) * scale) * g;
    second = S(o.beta2) * second + S((1 - o.beta2) * scale * scale) * g.square();
    const double own_rate = rate * group.rate;
    if (group.weight_decay > 0) p *= S(1 - own_rate * group.weight_decay);
    if (own_rate > 0)
      p -= S(own_rate / bias1) * first / ((second * S(1 / bias2)).sqrt() + S(o.epsilon));
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
/// For vectors (biases, the weights of norms) λ is 0, unless AdamWOptions::group says otherwise; it
/// also gives parameters learning rates of their own. A gradient whose squares would overflow is
/// clipped to the norm √(largest number) / 2, which is 9e18 for float. The two moments are models
/// themselves. To resume training, save and load both with io/training.hpp.
/// Loshchilov, Hutter 2017, arXiv 1711.05101, algorithm 2 with λ scaled by the learning rate, as
/// PyTorch does; clipping: Pascanu, Mikolov, Bengio 2012, arXiv 1211.5063, algorithm 1.
template <Record Model> struct AdamW {
  Model first;           ///< m, the first moment
  Model second;          ///< v, the second moment
  long long steps = 0;   ///< steps so far, the t of the equation
  AdamWOptions options;  ///< β₁, β₂, ε, λ and the clipping
  static constexpr auto names = fw::names("first", "second", "steps", "options");

  /// Throws std::invalid_argument if an option is out of its range.
  explicit AdamW(const Model& model, AdamWOptions settings = {})
      : first(zero_gradient(model)), second(first), options(settings) {
    detail::check_adamw_step(options, 0, 0, detail::adamw_range<detail::ParameterScalar<Model>>());
  }

  /// One step. Returns the norm of the gradient before clipping. Nothing is changed if it throws:
  /// std::runtime_error if the norm is not finite; std::invalid_argument if an option, the learning
  /// rate (finite, at least 0) or a shape is wrong, or if all weight matrices are 0 at the first
  /// step, as before fw::initialise.
  double step(Model& model, const Model& grad, double learning_rate) {
    return detail::adamw_step<detail::ParameterScalar<Model>>(
        {detail::object(model), detail::object(grad), detail::object(first),
         detail::object(second)},
        options, steps, learning_rate);
  }
};

}  // namespace fw

#ifndef FASTWEIGHTS_COMPILED
#include <fastweights/training/implementation/adamw.hpp>
#endif
