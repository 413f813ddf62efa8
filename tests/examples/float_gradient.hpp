#pragma once

#include <fastweights/core/random.hpp>
#include <fastweights/layers/parameters.hpp>
#include <string>

#include "catch.hpp"

/// Checks the gradient of every parameter by itself against a difference quotient in float, `step`
/// to both sides: along itself, or, where it is all but 0, along a random direction. loss() is that
/// of `model`, which is as it was afterwards.
template <class Model, class Loss>
void check_gradient_in_float(Model& model, const Model& gradient, const Loss& loss,
                             double step = 5e-3) {
  fw::Random random(9);
  fw::for_each_parameter(
      [&](const std::string& path, auto& p, const auto& g) {
        const bool flat = g.norm() < 1e-4f;
        auto along = p;
        along = g;
        if (flat) random.fill(along);
        along *= static_cast<float>(step) / along.norm();
        const auto before = p;
        p = before + along;
        const double above = loss();
        p = before - along;
        const double below = loss();
        p = before;
        INFO(path);
        const double expected = flat ? 0 : static_cast<double>(g.norm());
        CHECK((above - below) / (2 * step) == Catch::Approx(expected).epsilon(0.02).margin(1e-3));
      },
      model, gradient);
}
