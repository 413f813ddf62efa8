#pragma once

#include "support/subject.hpp"

/// \file
/// Tokens that checked calls accept.

namespace laws {

/// Inputs and queries in the ranges of their roles, with keys that keep every memory stable. The
/// outputs are NaN until a call writes them.
template <class S>
fw::testing::AnySequences<S> accepted_tokens(const AnyMemory<S>& memory, Index steps);

/// False of memories whose state may leave the range of float though every token is accepted: see
/// algorithms/checked.hpp.
bool tokens_decide_stability(const Subject& subject);

}  // namespace laws
