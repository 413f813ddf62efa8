#pragma once

#include <fastweights/core/leaves.hpp>
#include <functional>
#include <training/sequence_model.hpp>

/// Compares the gradient of every parameter with difference quotients: along the gradient, which
/// checks its size, and in random directions, which finds missing parts. The model is of double: a
/// step of 1e-6 loses half the digits to rounding and hardly ever meets the kink of a ReLU. loss()
/// computes the loss of `model`. Afterwards the model is as before.
void check_gradient(const fw::detail::Object& model, const fw::detail::Object& gradient,
                    const std::function<double()>& loss);

/// The check of a model of sequences, which run as one batch.
void check_sequence_gradient(SequenceModel& model, std::span<const TaskSequence> sequences);
