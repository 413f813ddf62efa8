#pragma once

#include <functional>
#include <training/trained_model.hpp>

/// Compares the gradient of every parameter with difference quotients: along the gradient, which
/// checks its size, and in random directions, which finds missing parts. The model is of double: a
/// step of 1e-6 loses half the digits to rounding and hardly ever meets the kink of a ReLU. loss()
/// computes the loss of `model`. Afterwards the model is as before.
void check_gradient(TrainedModel& model, TrainedModel& gradient,
                    const std::function<double()>& loss);
