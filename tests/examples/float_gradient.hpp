#pragma once

#include <fastweights/core/random.hpp>
#include <fastweights/layers/parameters.hpp>
#include <string>

#include "catch.hpp"

/// Checks the gradient of every parameter by itself against difference quotients in float: along
/// the gradient, for its size, and in random directions, for what it lacks. A kink of a ReLU within
/// the step spoils a quotient, all the more the longer the step, and rounding does, the shorter it
/// is: one of three steps to both sides, from `step` on, has to agree. loss() is that of `model`,
/// which is as it was afterwards.
template <class Model, class Loss>
void check_gradient_in_float(Model& model, const Model& gradient, const Loss& loss,
                             double step = 5e-3) {
  fw::Random random(9);
  fw::for_each_parameter(
      [&](const std::string& path, auto& p, const auto& g) {
        const auto before = p;
        auto along = p;
        const auto loss_at = [&](double distance) {
          p = before + static_cast<float>(distance) * along;
          const double there = loss();
          p = before;
          return there;
        };
        for (int direction = 0; direction < 5; ++direction) {
          along = g;
          if (direction > 0 || g.norm() < 1e-4f) random.fill(along);
          along /= along.norm();
          const auto expected = static_cast<double>(g.cwiseProduct(along).sum());
          const auto alike =
              Catch::Approx(expected).epsilon(0.03).margin(direction > 0 ? 3e-4 : 1e-3);
          double slope = 0;
          for (const double h : {step, step / 4, step * 4}) {
            slope = (loss_at(h) - loss_at(-h)) / (2 * h);
            if (slope == alike) break;
          }
          INFO(path << " direction " << direction);
          CHECK(slope == alike);
        }
      },
      model, gradient);
}
