#pragma once

#include <fastweights/networks/network.hpp>
#include <vector>

/// \file
/// The probability that a model gives to a text.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The natural logarithm of the probability of every token but the first, after those before it:
///
///     p_t = logits_t[ids_{t+1}] − log Σ_i exp(logits_t[i]),   t = 0 … T − 2
///
/// The T − 1 numbers are summed in double. A text is read from the first state in pieces of at most
/// 256 tokens, of which at most 2^24 logits are in memory, but those of one token at least. The
/// model is not changed. exp(−mean p) is the perplexity. Throws std::invalid_argument for fewer
/// than two tokens, an id that the model does not have, or a model whose outputs are not logits of
/// its symbols, and std::length_error for more tokens than its caches have room for.
template <class S>
std::vector<double> log_probabilities(const networks::Network<S>& network, Symbols ids);

}  // namespace fw::models

namespace fw::inline FASTWEIGHTS_ABI {
using models::log_probabilities;
}

#ifndef FASTWEIGHTS_COMPILED_MODELS
#include <fastweights/models/implementation/log_probabilities.hpp>
#endif
