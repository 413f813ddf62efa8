#pragma once

#include <Eigen/Core>
#include <fastweights/core/record.hpp>
#include <stdexcept>

/// \file
/// The parameters of a layer or model: the Eigen members of a record, however deep they are nested.
/// A gradient, or a moment of the optimiser, is a value of the model's own type, so what visits one
/// visits several in lockstep.
///
///     fw::for_each_parameter([](const std::string& path, auto& p) { ... }, model);
///     fw::for_each_parameter([](const std::string& path, auto& p, const auto& g) { ... }, model,
///     grad);

namespace fw {

namespace detail {

template <class T>
inline constexpr bool is_parameter =
    std::is_base_of_v<Eigen::EigenBase<std::remove_const_t<T>>, std::remove_const_t<T>>;

// Without the paths, so that a training step does not allocate.
template <class F, class First, class... Rest>
void visit_parameters(F&& f, First& first, Rest&... rest) {
  for_each_leaf(
      [&f](auto& leaf, auto&... others) {
        if constexpr (is_parameter<std::remove_reference_t<decltype(leaf)>>) f(leaf, others...);
      },
      first, rest...);
}

template <class T> bool same_shapes(const T& a, const T& b) {
  bool same = true;
  if constexpr (Record<T>) {
    for_each_member(
        [&](std::string_view, const auto& x, const auto& y) { same = same && same_shapes(x, y); },
        a, b);
  } else if constexpr (is_record_list<T>) {
    same = a.size() == b.size();
    for (std::size_t i = 0; same && i < a.size(); ++i) same = same_shapes(a[i], b[i]);
  } else if constexpr (is_parameter<T>) {
    same = a.rows() == b.rows() && a.cols() == b.cols();
  }
  return same;
}

// Models of one type can still differ in size.
template <class Model>
void check_same_shapes(std::string_view who, const Model& model, std::string_view argument,
                       const Model& other) {
  if (!same_shapes(model, other))
    throw std::invalid_argument(std::string(who) + ": the parameters of " + std::string(argument) +
                                " differ in shape or number from those expected");
}

}  // namespace detail

/// Calls f(path, parameter, the same parameter of each of rest) with dotted paths such as
/// "blocks.0.mixer.output.weight". A parameter of size 0, such as the bias of a layer without one,
/// is left out.
template <class F, Record First, Record... Rest>
void for_each_parameter(F&& f, First& first, Rest&... rest) {
  for_each_named_leaf(
      [&f](const std::string& path, auto& leaf, auto&... others) {
        if constexpr (detail::is_parameter<std::remove_reference_t<decltype(leaf)>>)
          if (leaf.size() > 0) f(path, leaf, others...);
      },
      std::string(), first, rest...);
}

/// How many numbers a model learns.
template <Record Model> Eigen::Index parameter_count(const Model& model) {
  Eigen::Index count = 0;
  detail::visit_parameters([&](const auto& p) { count += p.size(); }, model);
  return count;
}

/// Sets every parameter to zero: what a gradient starts from.
template <Record Model> void set_zero_parameters(Model& model) {
  detail::visit_parameters([](auto& p) { p.setZero(); }, model);
}

/// into += from, parameter by parameter: how the gradients of a batch come together. Throws
/// std::invalid_argument when their shapes differ.
template <Record Model> void add_parameters(Model& into, const Model& from) {
  detail::check_same_shapes("add_parameters", into, "from", from);
  detail::visit_parameters([](auto& p, const auto& q) { p += q; }, into, from);
}

/// Draws the parameters of every layer in a model, each by its own `initialise`; layers without one
/// stay as they were made. `random` has uniform() in [0, 1) and normal().
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
