#pragma once

#include <fastweights/core/leaves.hpp>
#include <fastweights/core/random.hpp>
#include <memory>

/// A model as its trainer sees it: parameters, whatever its type is. A gradient and a moment of
/// AdamW are models too.
class TrainedModel {
 public:
  virtual ~TrainedModel() = default;
  virtual std::unique_ptr<TrainedModel> clone() const = 0;
  virtual fw::detail::Object parameters() = 0;

  /// Draws the parameters.
  virtual void initialise(fw::Random& random) = 0;

 protected:
  TrainedModel() = default;
  TrainedModel(const TrainedModel&) = default;
  TrainedModel& operator=(const TrainedModel&) = default;
};

/// How many numbers a model learns.
long parameter_count(TrainedModel& model);
/// √Σg² over all parameters of a gradient.
double gradient_norm(TrainedModel& gradient);
void set_zero(TrainedModel& model);
/// into += from, parameter by parameter.
void add(TrainedModel& into, TrainedModel& from);
