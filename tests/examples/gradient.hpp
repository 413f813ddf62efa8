#pragma once

#include <fastweights/core/random.hpp>
#include <fastweights/layers/parameters.hpp>
#include <string>

#include "support/catch.hpp"

/// Checks the gradient of every parameter by itself against difference quotients: along the
/// gradient, for its size, and in random directions, for what it lacks. The model is of double: a
/// step of 1e-6 loses half the digits to rounding and hardly ever meets the kink of a ReLU. loss()
/// is that of `model`, which is as it was afterwards.
template <class Model, class Loss>
void check_gradient(Model& model, const Model& gradient, const Loss& loss) {
  constexpr double step = 1e-6;
  fw::Random random(9);
  fw::for_each_parameter(
      [&](const std::string& path, auto& p, const auto& g) {
        const auto before = p;
        auto along = p;
        const auto loss_at = [&](double distance) {
          p = before + distance * along;
          const double there = loss();
          p = before;
          return there;
        };
        for (int direction = 0; direction < 5; ++direction) {
          along = g;
          if (direction > 0 || g.norm() < 1e-9) random.fill(along);
          along /= along.norm();
          const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
          INFO(path << " direction " << direction);
          CHECK(slope == Catch::Approx(g.cwiseProduct(along).sum()).epsilon(1e-6).margin(1e-8));
        }
      },
      model, gradient);
}
