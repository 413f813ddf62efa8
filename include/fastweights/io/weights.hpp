#pragma once

#include <fastweights/core/record.hpp>
#include <fastweights/io/safetensors.hpp>
#include <set>
#include <string>

/// \file
/// Weights and states on disk. Parameters of a layer or model are saved under their dotted names
/// ("blocks.0.mixer.output.weight"), and members of a state under theirs, counters included. A
/// matrix is written as [rows, cols], as in PyTorch. A state_dict saved by safetensors.torch loads
/// if it has the same names.
///
///     fw::io::save(model, "model.safetensors");
///     fw::io::load(model, "model.safetensors");
///
/// Loading is strict. A tensor that is missing, unexpected, or of another shape or type throws
/// fw::io::SafeTensorsError with its name, and the model or state is unchanged. With a `prefix`
/// several models or states share a file; tensors outside of the prefix are ignored then.

namespace fw::io {

namespace detail {

using fw::detail::Leaf;
using fw::detail::LeafPath;
using fw::detail::Object;
using fw::detail::ScalarKind;

enum class Scope { parameters, state };

// A state saves arrays and numbers, a model only arrays. An array of size 0, such as the bias of a
// layer without one, is not a parameter.
inline bool is_saved(const Leaf& leaf, Scope scope) {
  return scope == Scope::state || (leaf.is_array && leaf.size() > 0);
}

// Calls f(name, leaf) for every leaf that is saved.
template <class F>
void for_each_saved(const Object& record, Scope scope, const std::string& prefix, const F& f) {
  visit_leaves(&record, 1,
               [&](const Leaf* leaf, const LeafPath& path) {
                 if (is_saved(*leaf, scope)) f(path.text(), *leaf);
               },
               {.name = prefix});
}

// Throws if the file has a tensor under the prefix that the record does not have.
inline void check_unexpected(const Object& record, Scope scope, const SafeTensors& file,
                             const std::string& prefix) {
  std::set<std::string> expected;
  for_each_saved(record, scope, prefix,
                 [&](std::string name, const Leaf&) { expected.insert(name); });
  const std::string dotted = prefix.empty() ? prefix : prefix + ".";
  for (const auto& name : file.names())
    if (name.starts_with(dotted) && !expected.contains(name))
      file.fail(name, "in the file, but not expected");
}

inline void load(const Object& record, Scope scope, const SafeTensors& file,
                 const std::string& prefix) {
  for_each_saved(record, scope, prefix,
                 [&](const std::string& name, const Leaf& leaf) { file.copy_to(name, leaf); });
  check_unexpected(record, scope, file, prefix);
}

// Loads into a copy first, so that an error leaves the record unchanged.
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

/// Adds every parameter of a layer or model to a writer.
template <Record Model>
void add_parameters(SafeTensorsWriter& writer, const Model& model, const std::string& prefix = "") {
  detail::add(writer, fw::detail::object(model), detail::Scope::parameters, prefix);
}

/// Sets every parameter of a layer or model from a file.
template <Record Model>
void load_parameters(Model& model, const SafeTensors& file, const std::string& prefix = "") {
  detail::load_all(model, detail::Scope::parameters, file, prefix);
}

/// Adds every member of a state, counters included, to a writer.
template <Record State>
void add_state(SafeTensorsWriter& writer, const State& state, const std::string& prefix = "") {
  detail::add(writer, fw::detail::object(state), detail::Scope::state, prefix);
}

/// Sets a state from a file. The state must already have the right sizes.
template <Record State>
void load_state(State& state, const SafeTensors& file, const std::string& prefix = "") {
  detail::load_all(state, detail::Scope::state, file, prefix);
}

/// Writes the parameters of a layer or model to a file of their own.
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
