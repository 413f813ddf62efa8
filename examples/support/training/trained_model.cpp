#include "training/trained_model.hpp"

#include <fastweights/training/adamw.hpp>

namespace {

using fw::detail::Leaf;
using fw::detail::Object;
using fw::detail::ScalarKind;

// Of the first parameter, and so of all.
ScalarKind scalar_of(const Object& model) {
  ScalarKind kind = ScalarKind::other;
  fw::detail::visit_leaves(&model, 1, [&](const Leaf* leaf, const fw::detail::LeafPath&) {
    if (kind == ScalarKind::other && leaf->is_array) kind = leaf->scalar;
  });
  return kind;
}

// Calls f.operator()<S>() for the scalar of a model's parameters.
template <class F> auto with_scalar(const Object& model, const F& f) {
  return scalar_of(model) == ScalarKind::float64 ? f.template operator()<double>()
                                                 : f.template operator()<float>();
}

}  // namespace

long parameter_count(TrainedModel& model) {
  return fw::detail::parameter_count(model.parameters());
}

double gradient_norm(TrainedModel& gradient) {
  const Object g = gradient.parameters();
  return with_scalar(g, [&]<class S> { return fw::detail::gradient_norm<S>(g); });
}

void set_zero(TrainedModel& model) {
  const Object m = model.parameters();
  with_scalar(m, [&]<class S> { fw::detail::set_zero_parameters<S>(m); });
}

void add(TrainedModel& into, TrainedModel& from) {
  const Object a = into.parameters(), b = from.parameters();
  with_scalar(a, [&]<class S> { fw::detail::add_parameters<S>(a, b); });
}
