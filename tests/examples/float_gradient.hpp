#pragma once

#include <fastweights/core/random.hpp>
#include <fastweights/layers/parameters.hpp>
#include <string>

#include "catch.hpp"

/// Checks the gradient of every parameter by itself against difference quotients in float, `step`
/// to both sides: along the gradient, for its size, and in random directions, for what it lacks.
/// loss() is that of `model`, which is as it was afterwards.
template <class Model, class Loss>
void check_gradient_in_float(Model& model, const Model& gradient, const Loss& loss,
                             double step = 5e-3) {
  fw::Random random(9);
  fw::for_each_parameter(
      [&](const std::string& path, auto& p, const auto& g) {
        const auto before = p;
        auto along = p;
        for (int direction = 0; direction < 5; ++direction) {
          along = g;
          if (direction > 0 || g.norm() < 1e-4f) random.fill(along);
          along /= along.norm();
          p = before + static_cast<float>(step) * along;
          const double above = loss();
          p = before - static_cast<float>(step) * along;
          const double below = loss();
          p = before;
          INFO(path << " direction " << direction);
          const auto expected = static_cast<double>(g.cwiseProduct(along).sum());
          CHECK((above - below) / (2 * step) ==
                Catch::Approx(expected).epsilon(0.03).margin(direction > 0 ? 3e-4 : 1e-3));
        }
      },
      model, gradient);
}
