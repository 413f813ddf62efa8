#pragma once

#include <fastweights/core/check.hpp>
#include <fastweights/core/record.hpp>
#include <fastweights/io/safetensors.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

/// \file
/// Weights and states on disk. Parameters of a layer or model are saved under their dotted names
/// ("blocks.0.mixer.output.weight"), and members of a state under theirs, counters included. A
/// matrix is written as [rows, cols], as in PyTorch. A state_dict saved by safetensors.torch loads
/// if it has the same names.
///
///     fw::io::save(model, "model.safetensors");
///     fw::io::load(model, "model.safetensors");
///     fw::io::load(model, bytes);                                  // of such a file, in memory
///     fw::io::load_state(memory, state, SafeTensors::view(bytes));
///
/// A memory and a state may also be chosen at run time: an AnyMemory and its AnyState.
///
/// Bytes in memory need no file system and no alignment. script/embed_weights makes a header of a
/// file. Loading uses the heap.
///
/// Loading is strict. A tensor that is missing, unexpected, or of another shape throws
/// fw::io::SafeTensorsError with its name, and the model or state is unchanged. Another
/// floating-point type is converted, and an integer is not a floating-point number (see dtype.hpp
/// for the rule). So 16-bit weights load into a float model. With a `prefix` several models or
/// states share a file; tensors outside of the prefix are ignored then.

namespace fw::inline FASTWEIGHTS_ABI::io {

namespace detail {

using fw::detail::Object;

enum class Scope { parameters, state };

// A state saves arrays and numbers, a model only arrays. An array of size 0, such as the bias of a
// layer without one, is not a parameter.
void load(const Object& record, Scope scope, const SafeTensors& file, const std::string& prefix);
void add(SafeTensorsWriter& writer, const Object& record, Scope scope, const std::string& prefix);

// Loads into a copy first, so that an error leaves the record unchanged.
template <class R>
void load_all(R& record, Scope scope, const SafeTensors& file, const std::string& prefix) {
  R loaded = record;
  load(fw::detail::object(loaded), scope, file, prefix);
  record = std::move(loaded);
}

// Calls check(), and reports its error as one of the file.
template <class Check>
void check_loaded([[maybe_unused]] const std::string& prefix, const Check& check) {
#if FASTWEIGHTS_EXCEPTIONS
  try {
    check();
  } catch (const std::invalid_argument& error) {
    fw::detail::raise<SafeTensorsError>("safetensors: state \"" + prefix + "\": " + error.what());
  }
#else
  check();
#endif
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
template <fw::detail::AnyRecord State>
void add_state(SafeTensorsWriter& writer, const State& state, const std::string& prefix = "") {
  detail::add(writer, fw::detail::object(state), detail::Scope::state, prefix);
}

/// Sets a state from a file. The state must already have the right sizes. Refuses counters that are
/// not 0 to max_count, and no others: only the memory or layer knows what they may be. It checks
/// them at the next call that takes the state. To have them checked here, pass it as well. If the
/// types are the same too, as after add_state, the stream continues bit for bit.
template <fw::detail::AnyRecord State>
void load_state(State& state, const SafeTensors& file, const std::string& prefix = "") {
  detail::load_all(state, detail::Scope::state, file, prefix);
}

/// Loads a state of `owner`, a memory, AnyMemory or layer. Refuses a state that no run of
/// its writes can reach (see fw::check_state), and an AnyState of another memory.
template <class Owner, fw::detail::AnyRecord State>
void load_state(const Owner& owner, State& state, const SafeTensors& file,
                const std::string& prefix = "") {
  State loaded = state;
  load_state(loaded, file, prefix);
  detail::check_loaded(prefix, [&] { check_state(owner, loaded); });
  state = std::move(loaded);
}

/// Reads the parameters of a layer or model from the bytes of a file of their own.
template <Record Model> void load(Model& model, std::span<const std::byte> bytes) {
  load_parameters(model, SafeTensors::view(bytes));
}

#if FASTWEIGHTS_FILES
/// Writes the parameters of a layer or model to a file of their own. When this returns, they are on
/// disk; before, `path` is the old file (see SafeTensorsWriter::write).
template <Record Model> void save(const Model& model, const std::filesystem::path& path) {
  SafeTensorsWriter writer;
  add_parameters(writer, model);
  writer.write(path);
}

/// Reads the parameters of a layer or model from a file of their own.
template <Record Model> void load(Model& model, const std::filesystem::path& path) {
  load_parameters(model, SafeTensors::read(path));
}
#endif

}  // namespace fw::io

#ifndef FASTWEIGHTS_COMPILED
#include "fastweights/io/implementation/weights.hpp"
#endif
