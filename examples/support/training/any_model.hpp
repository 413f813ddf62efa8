#pragma once

#include <array>
#include <fastweights/layers/parameters.hpp>
#include <memory>

#include "training/trained_model.hpp"

/// Refers to a model whose parameters are of S, as fw::Trainer and fw::io take one, whatever its
/// type is. A copy has a model of its own. An assignment copies the parameters, from a model of the
/// same type.
template <class S> class AnyModel {
 public:
  using Scalar = S;
  static constexpr auto names = fw::names();  // a record: its parts are those of the model

  /// The model must outlive this.
  explicit AnyModel(TrainedModel& model) : model_(&model) {}
  AnyModel(const AnyModel& other) : copy_(other.model_->clone()), model_(copy_.get()) {}
  AnyModel& operator=(const AnyModel& other) {
    fw::detail::check_same_shapes("AnyModel", object(), "the other model", other.object());
    fw::detail::visit_parameters<S>(
        std::array{object(), other.object()},
        [](const fw::detail::Leaf* leaves) { leaves[0].entries<S>() = leaves[1].entries<S>(); });
    return *this;
  }
  ~AnyModel() = default;

  TrainedModel& model() { return *model_; }

  std::size_t part_count() const { return object().type->count(object().address); }
  fw::detail::Object part(std::size_t i) { return object().type->part(object().address, i); }

 private:
  fw::detail::Object object() const { return model_->parameters(); }

  std::unique_ptr<TrainedModel> copy_;
  TrainedModel* model_;
};
