#pragma once

#include <fastweights/core/leaves.hpp>
#include <fastweights/layers/parameters.hpp>
#include <fastweights/math/random.hpp>
#include <memory>

/// A model as its trainer sees it: parameters, whatever its type is. A gradient is a model too.
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

/// Implements the interface of a model, which derives from TrainedModel, by a record. `Self` is the
/// class that derives from this one.
template <class Self, class Interface, class Network> class RecordModel : public Interface {
 public:
  explicit RecordModel(Network n) : network(std::move(n)) {}

  std::unique_ptr<TrainedModel> clone() const override {
    return std::make_unique<Self>(static_cast<const Self&>(*this));
  }
  fw::detail::Object parameters() override { return fw::detail::object(network); }
  void initialise(fw::Random& random) override { fw::initialise(network, random); }

  Network network;
};

/// The number of parameters of a model.
inline long parameter_count(TrainedModel& model) {
  return fw::detail::parameter_count(model.parameters());
}
