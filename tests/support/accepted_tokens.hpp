#pragma once

#include "support/subject.hpp"

/// \file
/// Tokens that checked calls accept.

namespace laws {

/// Inputs and queries in the ranges of their roles, with keys that keep every memory stable. The
/// outputs are NaN until a call writes them.
template <class S>
fw::testing::AnySequences<S> accepted_tokens(const AnyMemory<S>& memory, Index steps);

}  // namespace laws
