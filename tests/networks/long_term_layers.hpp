#pragma once

#include <fastweights/layers/joined_attention.hpp>

/// \file
/// Attention to every kind of long-term memory, without the types of the memories: these functions
/// are compiled once for each scalar, from long_term_layers_of.hpp.

namespace long_term {

using namespace fw::networks;
using fw::Index;

constexpr Index d = 4, chunk = 2, window = 3, heads = 2;

/// The long-term layers that are checked.
enum class Kind {
  even,         ///< a continuous memory with even samples, two components
  penalised,    ///< the same with one component and a penalty of its densities
  sticky,       ///< with sticky samples, behind a convolution
  affine_gate,  ///< a continuous memory behind an affine gate
  compressive,  ///< a compressive memory behind a strided convolution
  pooling       ///< one that takes means
};

/// long_term_attention() with a layer of this kind.
template <class S>
Value<S> attend(Kind kind, const Value<S>& tokens, const Value<S>& queries, const std::string& name,
                const LongTermWindow& when);
/// joined_attention() with a layer of this kind.
template <class S>
Value<S> join(Kind kind, const Value<S>& x, const Value<S>& near, const LongTermWindow& when,
              Join how);

}  // namespace long_term
