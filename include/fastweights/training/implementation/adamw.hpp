#pragma once

#include <fastweights/core/errors.hpp>
#include <fastweights/core/finite.hpp>
#include <fastweights/core/implementation/inline.hpp>
#include <fastweights/training/adamw.hpp>
#include <stdexcept>

/// \file
/// The checks of training/adamw.hpp.

namespace fw::inline FASTWEIGHTS_ABI::detail {

EIGEN_DONT_INLINE FASTWEIGHTS_INLINE void check_adamw(const char* which, double given, bool valid,
                                                      const char* expected) {
  if (valid && is_finite(given)) return;
  throw_invalid({"AdamW: ", which, " is ", number_text(given), ", expected ", expected});
}

FASTWEIGHTS_INLINE void check_adamw_step(const AdamWOptions& o, long long steps, double rate,
                                         const AdamWRange& range) {
  constexpr const char* factor = "at least 0 and below 1";
  constexpr const char* from_0 = "a finite number of at least 0";
  const double rates = rate / (1 - o.beta1);
  check_adamw("beta1", o.beta1, o.beta1 >= 0 && o.beta1 < 1, factor);
  check_adamw("beta2", o.beta2, o.beta2 >= 0 && o.beta2 < 1, factor);
  check_adamw("epsilon", o.epsilon, o.epsilon >= range.smallest && o.epsilon <= range.largest,
              "a finite number above 0");
  check_adamw("weight_decay", o.weight_decay, o.weight_decay >= 0, from_0);
  check_adamw("clip", o.clip, o.clip >= 0, from_0);
  check_adamw("learning_rate", rate,
              rate >= 0 && rates <= range.largest && rate * o.weight_decay <= range.largest,
              from_0);
  if (steps < 0)
    throw_invalid({"AdamW: steps is ", std::to_string(steps), ", expected at least 0"});
}

FASTWEIGHTS_INLINE std::vector<ParameterGroup> adamw_groups(const AdamWOptions& o,
                                                            const Object& model, double rate,
                                                            const AdamWRange& range) {
  std::vector<ParameterGroup> groups;
  if (!o.group) return groups;
  constexpr const char* from_0 = "a finite number of at least 0";
  visit_leaves(&model, 1, [&](const Leaf* leaf, const LeafPath& path) {
    if (!leaf->is_array) return;
    const ParameterGroup group = o.group(path.text(), leaf->is_vector());
    const std::string which = "the group of " + path.text() + ": ";
    const double own_rate = rate * group.rate;
    check_adamw((which + "rate").c_str(), group.rate,
                group.rate >= 0 && own_rate / (1 - o.beta1) <= range.largest, from_0);
    check_adamw((which + "weight_decay").c_str(), group.weight_decay,
                group.weight_decay >= 0 && own_rate * group.weight_decay <= range.largest, from_0);
    groups.push_back(group);
  });
  return groups;
}

FASTWEIGHTS_INLINE void check_adamw_norm(double norm, const Object& grad, long long step) {
  if (is_finite(norm)) return;
  std::string reason = "it overflows";
  visit_leaves(&grad, 1, [&](const Leaf* leaf, const LeafPath& path) {
    const Index n = leaf->size();
    if (leaf->is_array && first_outside({leaf->data, n, 1, n, leaf->scalar}, {}) >= 0)
      reason = path.text() + " is not finite";
  });
  raise<std::runtime_error>("AdamW: the gradient's norm is " + std::to_string(norm) + " at step " +
                            std::to_string(step) + ": " + reason);
}

FASTWEIGHTS_INLINE void check_initialised(const Object& model) {
  bool has_matrix = false, is_zero = true;
  visit_leaves(&model, 1, [&](const Leaf* leaf, const LeafPath&) {
    if (!leaf->is_array || leaf->is_vector() || leaf->size() == 0) return;
    has_matrix = true;
    const Index n = leaf->size();
    is_zero = is_zero && first_outside({leaf->data, n, 1, n, leaf->scalar}, {0, 0}) < 0;
  });
  if (has_matrix && is_zero)
    throw_invalid(
        {"AdamW: all weight matrices of the model are 0; call fw::initialise(model, random) or "
         "load them, or set AdamWOptions::accept_zero_model"});
}

}  // namespace fw::detail
