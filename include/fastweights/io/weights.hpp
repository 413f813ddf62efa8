#pragma once

#include <fastweights/core/record.hpp>
#include <fastweights/io/safetensors.hpp>
#include <string>

/// \file
/// Weights and states on disk. A layer or model is saved and loaded by the dotted names of its
/// parameters ("blocks.0.mixer.output.weight"), a state by the names of its members, counters
/// included. A matrix is written as [rows, cols] as PyTorch has it, so that a state_dict saved by
/// safetensors.torch loads by name.
///
///     fw::io::save(model, "model.safetensors");
///     fw::io::load(model, "model.safetensors");
///
/// Loading is strict: a missing tensor, one too many, or one of another shape or type throws
/// fw::io::SafeTensorsError that names it, and leaves what was to be loaded as it was. With a
/// `prefix`, several things share a file, and only tensors under the prefix can be too many.

namespace fw::io {

namespace detail {

template <class T> inline constexpr bool is_array = std::is_base_of_v<Eigen::EigenBase<T>, T>;

enum class Scope { parameters, state };

// Calls f(name, leaf) for the leaves that are saved: arrays, and in states counters too. A
// parameter of size 0 (the bias of a layer without one) is no parameter.
template <Scope scope, class R, class F>
void for_each_saved(R& record, const std::string& prefix, F&& f) {
  fw::for_each_named_leaf(
      [&f](const std::string& name, auto& leaf) {
        using T = std::remove_cvref_t<decltype(leaf)>;
        if constexpr (is_array<T>) {
          if (scope == Scope::state || leaf.size() > 0) f(name, leaf);
        } else if constexpr (scope == Scope::state && std::is_arithmetic_v<T>) {
          f(name, leaf);
        }
      },
      prefix, record);
}

template <Scope scope, class R>
void load(R& record, const SafeTensors& file, const std::string& prefix) {
  R loaded = record;
  std::size_t wanted = 0;
  for_each_saved<scope>(loaded, prefix, [&](const std::string& name, auto& leaf) {
    using T = std::remove_cvref_t<decltype(leaf)>;
    if constexpr (is_array<T>) {
      file.copy_to(name, leaf);
    } else {
      const auto values = file.template values<T>(name);
      if (values.size() != 1)
        file.fail(name, "expected one number, has " + std::to_string(values.size()));
      if (std::is_integral_v<T> && values[0] < 0)
        file.fail(name, "expected a count, is " + std::to_string(values[0]));
      leaf = values[0];
    }
    ++wanted;
  });
  const std::string under = prefix.empty() ? prefix : prefix + ".";
  std::size_t found = 0;
  for (const auto& name : file.names()) found += name.starts_with(under);
  if (found != wanted) {
    for (const auto& name : file.names()) {
      bool known = !name.starts_with(under);
      for_each_saved<scope>(loaded, prefix,
                            [&](const std::string& ours, auto&) { known = known || ours == name; });
      if (!known) file.fail(name, "in the file, but not expected");
    }
  }
  record = std::move(loaded);
}

template <Scope scope, class R>
void add(SafeTensorsWriter& writer, const R& record, const std::string& prefix) {
  for_each_saved<scope>(record, prefix,
                        [&](const std::string& name, const auto& leaf) { writer.add(name, leaf); });
}

}  // namespace detail

/// Adds every parameter of a layer or model to a file to be written.
template <Record Model>
void add_parameters(SafeTensorsWriter& writer, const Model& model, const std::string& prefix = "") {
  detail::add<detail::Scope::parameters>(writer, model, prefix);
}

/// Sets every parameter of a layer or model from a file.
template <Record Model>
void load_parameters(Model& model, const SafeTensors& file, const std::string& prefix = "") {
  detail::load<detail::Scope::parameters>(model, file, prefix);
}

/// Adds every member of a state, counters included, to a file to be written.
template <Record State>
void add_state(SafeTensorsWriter& writer, const State& state, const std::string& prefix = "") {
  detail::add<detail::Scope::state>(writer, state, prefix);
}

/// Sets a state, of the right sizes already, from a file.
template <Record State>
void load_state(State& state, const SafeTensors& file, const std::string& prefix = "") {
  detail::load<detail::Scope::state>(state, file, prefix);
}

/// Writes the parameters of a layer or model as a file of their own.
template <Record Model> void save(const Model& model, const std::filesystem::path& path) {
  SafeTensorsWriter writer;
  add_parameters(writer, model);
  writer.write(path);
}

/// Reads the parameters of a layer or model from a file of their own.
template <Record Model> void load(Model& model, const std::filesystem::path& path) {
  load_parameters(model, SafeTensors::read(path));
}

}  // namespace fw::io
