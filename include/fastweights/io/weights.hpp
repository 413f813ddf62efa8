#pragma once

#include <fastweights/core/record.hpp>
#include <fastweights/io/safetensors.hpp>
#include <set>
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

using fw::detail::Leaf;
using fw::detail::LeafPath;
using fw::detail::Object;
using fw::detail::ScalarKind;

enum class Scope { parameters, state };

// What is saved: arrays, and in states numbers too. A parameter of size 0, such as the bias of a
// layer without one, is no parameter.
inline bool is_saved(const Leaf& leaf, Scope scope) {
  return scope == Scope::state || (leaf.is_array && leaf.size() > 0);
}

// Calls f(name, leaf) for every leaf that is saved.
template <class F>
void for_each_saved(const Object& record, Scope scope, const std::string& prefix, const F& f) {
  visit_leaves(
      &record, 1,
      [&](const Leaf* leaf, const LeafPath& path) {
        if (is_saved(*leaf, scope)) f(path.text(), *leaf);
      },
      {.name = prefix});
}

// Refuses tensors under the prefix that are not among the record's own.
inline void check_surplus(const Object& record, Scope scope, const SafeTensors& file,
                          const std::string& prefix) {
  std::set<std::string> own;
  for_each_saved(record, scope, prefix, [&](std::string name, const Leaf&) { own.insert(name); });
  const std::string under = prefix.empty() ? prefix : prefix + ".";
  for (const auto& name : file.names())
    if (name.starts_with(under) && !own.contains(name))
      file.fail(name, "in the file, but not expected");
}

inline void load(const Object& record, Scope scope, const SafeTensors& file,
                 const std::string& prefix) {
  for_each_saved(record, scope, prefix, [&](const std::string& name, const Leaf& leaf) {
    file.copy_to(name, leaf);
  });
  check_surplus(record, scope, file, prefix);
}

// Into a copy first, so that what throws leaves the record as it was.
template <class R>
void load_all(R& record, Scope scope, const SafeTensors& file, const std::string& prefix) {
  R loaded = record;
  load(fw::detail::object(loaded), scope, file, prefix);
  record = std::move(loaded);
}

inline void add(SafeTensorsWriter& writer, const Object& record, Scope scope,
                const std::string& prefix) {
  for_each_saved(record, scope, prefix,
                 [&](const std::string& name, const Leaf& leaf) { writer.add(name, leaf); });
}

}  // namespace detail

/// Adds every parameter of a layer or model to a file to be written.
template <Record Model>
void add_parameters(SafeTensorsWriter& writer, const Model& model, const std::string& prefix = "") {
  detail::add(writer, fw::detail::object(model), detail::Scope::parameters, prefix);
}

/// Sets every parameter of a layer or model from a file.
template <Record Model>
void load_parameters(Model& model, const SafeTensors& file, const std::string& prefix = "") {
  detail::load_all(model, detail::Scope::parameters, file, prefix);
}

/// Adds every member of a state, counters included, to a file to be written.
template <Record State>
void add_state(SafeTensorsWriter& writer, const State& state, const std::string& prefix = "") {
  detail::add(writer, fw::detail::object(state), detail::Scope::state, prefix);
}

/// Sets a state, of the right sizes already, from a file.
template <Record State>
void load_state(State& state, const SafeTensors& file, const std::string& prefix = "") {
  detail::load_all(state, detail::Scope::state, file, prefix);
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
