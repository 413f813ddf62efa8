#pragma once

#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/any_memory/options.hpp>

/// \file
/// The table of memories by name, which the headers of any_memory/table/ fill, each a group of
/// them. A group may list rules that programs also make without a name, as the layers of published
/// models do:
///
///     #define FASTWEIGHTS_DELTAS(prefix, S) FASTWEIGHTS_ERASED(prefix, DeltaRule<S>)
///     FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_DELTAS)
///
/// They become an AnyMemory in the source of the group, in fastweights::compiled. Another source
/// that includes the group's header does not compile them again, nor the table itself.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

/// Maker of one memory.
template <class S> struct TableEntry {
  std::string_view name;
  MemoryFacts facts;
  AnyMemory<S> (*make)(OptionReader&);
};

/// The memories of one scalar.
template <class S> class MemoryTable {
 public:
  using Scalar = S;
  /// `make` is a lambda without captures, OptionReader& → a memory.
  template <class Make> void add(std::string_view name, const Make&, MemoryFacts facts = {}) {
    entries.push_back(
        {name, facts, [](OptionReader& options) { return AnyMemory<S>(Make()(options)); }});
  }
  /// Throws std::invalid_argument, listing all names, for a name that is not in the table.
  const TableEntry<S>& find(std::string_view name) const;

  std::vector<TableEntry<S>> entries;
};

/// The table of a scalar; made at the first call.
template <class S> const MemoryTable<S>& memory_table();

/// Throws std::invalid_argument: "unknown memory: Name, expected one of …".
[[noreturn]] void throw_unknown_memory(std::string_view name,
                                       const std::vector<std::string_view>& known);

}  // namespace detail

}  // namespace fw

#define FASTWEIGHTS_ERASED(prefix, ...) \
  prefix template std::unique_ptr<ErasedMemory<__VA_ARGS__::Scalar>> erased(__VA_ARGS__)

#ifdef FASTWEIGHTS_COMPILED
#ifdef FASTWEIGHTS_COMPILED_COMPLEX  // as the tests have them
#define FASTWEIGHTS_COMPILED_RULES(list) \
  list(extern, float);                   \
  list(extern, double);                  \
  list(extern, std::complex<double>)
#else
#define FASTWEIGHTS_COMPILED_RULES(list) \
  list(extern, float);                   \
  list(extern, double)
#endif
#else
#define FASTWEIGHTS_COMPILED_RULES(list) static_assert(true)
#endif
