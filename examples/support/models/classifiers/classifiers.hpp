#pragma once

#include <fastweights/core/views.hpp>
#include <memory>
#include <string>

#include "models/classifiers/recurrent_kinds.hpp"
#include "training/experiments/classifier_model.hpp"

/// \file
/// The models that associative_retrieval and glimpses compare: recurrent layers of R hidden units.

/// The tokens that a model reads.
struct Tokens {
  fw::Index size;           ///< rows of a vector, or of the embedding of a symbol
  fw::Index symbols = 0;    ///< 0: the tokens are vectors
  fw::Index encoded = 100;  ///< rows of what the recurrent layer reads
};

/// The model of that kind around R units, its parameters drawn from `seed`; `eta` is the η of the
/// fast weights. Throws std::invalid_argument for another kind than those of recurrent_kinds.
template <class S>
std::unique_ptr<ClassifierModel> make_classifier(const std::string& kind, const Tokens& tokens,
                                                 fw::Index units, double eta, std::uint64_t seed);
