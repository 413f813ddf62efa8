#pragma once

#include <fastweights/layers/layer.hpp>
#include <memory>
#include <string>
#include <vector>

#include "models/kinds.hpp"
#include "tasks/sorting_task.hpp"
#include "training/sequence_model.hpp"

/// \file
/// The models of the sorting task: the same transformer around four memories.

/// The tokens that a model reads of a sequence, and the answers. Previous outputs have embeddings
/// of their own.
inline TaskSequence sorting_sequence(const SortSequence& sequence) {
  TaskSequence read{sequence.input, std::vector<int>(sequence.input.size(), no_answer)};
  for (std::size_t i = read.input.size() - sort_symbols + 1; i < read.input.size(); ++i)
    read.input[i] += sort_vocabulary;
  std::ranges::copy(sequence.targets, read.targets.end() - sort_symbols);
  return read;
}

/// Numbers of tokens that a model reads before the separator.
struct SortingReading {
  long tail = 0;   ///< of these gradients are computed; older ones are only read
  long reach = 0;  ///< how far back the model can see, 0 for all; older tokens are not read
};

class SortingModel : public SequenceModel {
 public:
  SortingReading reading;
};

/// Sizes of the models and their memories.
struct SortingOptions {
  fw::Index layers = 2, width = 64, heads = 4, hidden = 256;
  fw::Index window = 64;      ///< tokens of a layer's short-term memory
  fw::Index chunk = 64;       ///< tokens that enter the long-term memory together
  fw::Index functions = 128;  ///< N, or slots of the compressive memory
  fw::Index samples = 1024;   ///< M, taken evenly: as dense as tokens are in the longer sequences
  fw::Index sticky = 256;     ///< M, taken where the past was attended to; a write costs more
  fw::Index rate = 4;         ///< tokens to a slot of the compressive memory
  std::vector<double> widths = {0.01, 0.05};
  double ridge = 0.5;
  double tau = 0;  ///< 0: all tokens of the past have the same weight

  /// The number of tokens that the short-term memories of all layers see together: a layer's window
  /// holds outputs of the layer below, which depend on the window of that.
  fw::Index reach() const { return layers * window; }
};

inline const Kinds sorting_kinds{{"cache", "cache only"},
                                 {"compressive", "compressive memory"},
                                 {"continuous", "infinite-former"},
                                 {"sticky", "infinite-former, sticky"}};

/// A model of that kind, its parameters still zero. The cache-only model has as many parameters as
/// that with the continuous memory: its feed-forward layers are larger by the parameters of the
/// long-term part.
template <class S = float>
std::unique_ptr<SortingModel> make_sorting_model(const std::string& kind, const SortingOptions& o);
