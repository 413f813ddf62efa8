#pragma once

#include <fastweights/any_memory/memory_table.hpp>

/// \file
/// Memories by name:
///
///     auto memory = fw::make_memory<float>("GatedDeltaRule", {.key_size = 64});
///     for (const std::string& name : fw::memory_names()) …
///
/// for float, double and std::complex<double>. With fastweights::compiled all memories are compiled
/// once, and a source that includes this header compiles in two seconds; without it, every source
/// that calls make_memory compiles all of them.
///
/// A new memory is one line in a header of any_memory/table/.

namespace fw::inline FASTWEIGHTS_ABI {

/// The memory with this name. Throws std::invalid_argument for a name or an option that is unknown,
/// and lists the known ones; and for a size or a hyperparameter that the memory refuses.
template <class S> AnyMemory<S> make_memory(std::string_view name, const MemoryOptions& options) {
  detail::OptionReader reader(name, options);
  AnyMemory<S> memory = detail::memory_table<S>().find(name).make(reader);
  reader.check_unknown();
  return memory;
}

/// The names of all memories of a scalar, in the order of the table. Float has all of them; a few,
/// such as those in 8 bits, are in no other scalar.
template <class S = float> std::vector<std::string> memory_names() {
  std::vector<std::string> names;
  for (const auto& entry : detail::memory_table<S>().entries) names.emplace_back(entry.name);
  return names;
}

/// Facts of a memory in the table.
template <class S = float> MemoryFacts memory_facts(std::string_view name) {
  return detail::memory_table<S>().find(name).facts;
}

/// The hyperparameters of a memory with their defaults, in the order of its documentation.
template <class S = float> std::vector<MemoryOption> memory_options(std::string_view name) {
  const MemoryOptions sizes{.key_size = 2};
  detail::OptionReader reader(name, sizes);
  detail::memory_table<S>().find(name).make(reader);
  return reader.known();
}

}  // namespace fw

#ifndef FASTWEIGHTS_COMPILED
#include <fastweights/any_memory/implementation/table.hpp>
#include <fastweights/any_memory/table/all.hpp>
#endif
