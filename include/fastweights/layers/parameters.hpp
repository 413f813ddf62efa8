#pragma once

#include <Eigen/Core>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/leaves.hpp>
#include <functional>
#include <memory>

/// \file
/// The parameters of a layer or model: the Eigen members of a record, at any depth. A gradient, or
/// a moment of the optimiser, is a value of the model's own type, so one function can visit the
/// parameters of several values in lockstep.
///
///     fw::for_each_parameter([](const std::string& path, auto& p) { ... }, model);
///     fw::for_each_parameter([](const std::string& path, auto& p, auto& g) { ... }, model, grad);

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

template <class T>
inline constexpr bool is_parameter =
    std::is_base_of_v<Eigen::EigenBase<std::remove_const_t<T>>, std::remove_const_t<T>>;

// Two models of one type can differ in size.
inline void check_same_shapes(std::string_view who, const Object& model, std::string_view argument,
                              const Object& other) {
  if (!same_shapes(model, other))
    throw_invalid(
        {who, ": the parameters of ", argument, " differ in shape or number from those expected"});
}

// The scalar of the first parameter of a record, or void.
template <class T, std::size_t I = 0> constexpr auto parameter_scalar() {
  if constexpr (is_array<T>) {
    return std::type_identity<typename T::Scalar>{};
  } else if constexpr (is_record_list<T>) {
    return parameter_scalar<typename T::value_type>();
  } else if constexpr (!Record<T>) {
    return std::type_identity<void>{};
  } else if constexpr (DynamicRecord<T>) {
    return std::type_identity<typename T::Scalar>{};
  } else if constexpr (I == member_count<T>) {
    return std::type_identity<void>{};
  } else {
    constexpr auto scalar = parameter_scalar<member_t<T, I>>();
    if constexpr (std::is_void_v<typename decltype(scalar)::type>)
      return parameter_scalar<T, I + 1>();
    else
      return scalar;
  }
}
template <Record Model> using ParameterScalar = typename decltype(parameter_scalar<Model>())::type;

// Refuses the model itself, or a copy of it, in place of a zero gradient: `Model grad = model;`.
template <Record Model>
void check_gradient(std::string_view who, const Model& model, const Model& grad) {
  const auto refuse = [&](std::string_view what) {
    throw_invalid({who, ": grad ", what, ", expected what fw::zero_gradient makes"});
  };
  if (std::addressof(model) == std::addressof(grad)) refuse("is the model itself");
  const Object weights = object(model), gradient = object(grad);
  check_same_shapes(who, weights, "grad", gradient);
  if constexpr (scalar_kind<ParameterScalar<Model>>() != ScalarKind::other)
    if (equal(weights, gradient) && !is_zero(weights)) refuse("has the values of the model");
}

// Calls f(leaves) for every array of several records of one type, in lockstep. All arrays must have
// scalar S. Does not allocate.
template <class S, class F, std::size_t N>
void visit_parameters(const std::array<Object, N>& records, const F& f) {
  visit_leaves(records.data(), N, [&f](const Leaf* leaves, const LeafPath& path) {
    if (!leaves->is_array) return;
    if (leaves->scalar != scalar_kind<S>())
      throw_invalid({"the parameter ", path.text(),
                     " has another scalar type than the parameters before it"});
    f(leaves);
  });
}

inline Index parameter_count(const Object& model) {
  Index count = 0;
  visit_leaves(&model, 1, [&](const Leaf* leaf, const LeafPath&) {
    if (leaf->is_array) count += leaf->size();
  });
  return count;
}

template <class S> void set_zero_parameters(const Object& model) {
  visit_parameters<S>(std::array{model}, [](const Leaf* leaf) { leaf->entries<S>().setZero(); });
}

template <class S> void add_parameters(const Object& into, const Object& from) {
  check_same_shapes("add_parameters", into, "from", from);
  visit_parameters<S>(std::array{into, from},
                      [](const Leaf* leaves) { leaves[0].entries<S>() += leaves[1].entries<S>(); });
}

}  // namespace detail

/// Calls f(path, parameter of first, same parameter of each of rest) with dotted paths such as
/// "blocks.0.mixer.output.weight". Skips parameters of size 0, such as the bias of a layer without
/// one.
template <class F, Record First, Record... Rest>
void for_each_parameter(F&& f, First& first, Rest&... rest) {
  for_each_named_leaf(
      [&f](const std::string& path, auto& leaf, auto&... others) {
        if constexpr (detail::is_parameter<std::remove_reference_t<decltype(leaf)>>)
          if (leaf.size() > 0) f(path, leaf, others...);
      },
      std::string(), first, rest...);
}

/// The function that a backward pass calls for every part of a gradient it has completed, say to
/// sum it over processes while it continues.
using GradientReady = std::function<void(const detail::Object& part)>;

/// The number of scalars that a model learns.
template <Record Model> Eigen::Index parameter_count(const Model& model) {
  return detail::parameter_count(detail::object(model));
}

/// Sets every parameter to zero.
template <Record Model> void set_zero_parameters(Model& model) {
  using S = detail::ParameterScalar<Model>;
  if constexpr (!std::is_void_v<S>) detail::set_zero_parameters<S>(detail::object(model));
}

/// A zero gradient for a layer or model: a copy whose parameters are zero.
template <Record Model> Model zero_gradient(const Model& model) {
  Model gradient = model;
  set_zero_parameters(gradient);
  return gradient;
}

/// into += from, parameter by parameter, for example to sum the gradients of a batch. Throws
/// std::invalid_argument when the shapes differ.
template <Record Model> void add_parameters(Model& into, const Model& from) {
  using S = detail::ParameterScalar<Model>;
  if constexpr (!std::is_void_v<S>)
    detail::add_parameters<S>(detail::object(into), detail::object(from));
}

/// Initialises every layer of a model with the layer's own `initialise`. Layers without one keep
/// their values. `random` has uniform() in [0, 1) and normal().
template <Record Model, class Generator> void initialise(Model& model, Generator& random) {
  if constexpr (requires { model.initialise(random); }) {
    model.initialise(random);
  } else {
    for_each_member(
        [&random](std::string_view, auto& member) {
          using T = std::remove_reference_t<decltype(member)>;
          if constexpr (Record<T>)
            fw::initialise(member, random);
          else if constexpr (is_record_list<T>)
            for (auto& each : member) fw::initialise(each, random);
        },
        model);
  }
}

}  // namespace fw
