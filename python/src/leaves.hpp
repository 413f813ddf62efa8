#pragma once

#include "objects.hpp"

/// \file
/// The arrays and numbers of a state, by their dotted names ("normaliser.sum").

namespace fw::python {

struct NamedLeaf {
  std::string name;
  fw::detail::Leaf leaf;
};

/// The leaves of one stream.
std::vector<NamedLeaf> leaves_of(const fw::detail::Object& stream);

/// The type of its array: that of its entries. NumPy has no bfloat16: the array has its bits, in
/// uint16.
DType dtype_of(const fw::detail::Leaf& leaf);
/// A number has no axis, a vector one, a matrix two.
std::vector<std::size_t> axes_of(const fw::detail::Leaf& leaf);
/// The axes of a leaf after [batch, heads].
std::vector<std::size_t> shape_for(const fw::detail::Leaf& leaf, Index batch, Index heads);

/// Throws nb::value_error: "DeltaRule: state: what".
[[noreturn]] void throw_state(const Heads& heads, const std::string& what);

/// Copies of all arrays of a state, and of one: [batch, heads, …].
nb::dict arrays_of(const State& state);
nb::object array_of(const State& state, const std::string& name);
/// The arrays of one stream without a copy; `owner`, a State, stays alive with them.
nb::dict views_of(nb::handle owner, Index batch, Index head);
/// The state of a memory with these arrays: all that the memory has, and no others.
nb::object state_of_arrays(nb::handle memory, const nb::dict& arrays);

/// Files of safetensors, where head h of sequence b has the prefix "b.h".
void save_state(const State& state, const std::string& path);
nb::object load_state(nb::handle memory, const std::string& path);

}  // namespace fw::python
