#pragma once

#include <fastweights/io/training.hpp>
#include <memory>
#include <string>

#include "models/kinds.hpp"
#include "models/language_model.hpp"

/// \file
/// The character models of char_lm and generate, the same network around four memories, and their
/// checkpoints.

/// The width of a model is heads × head_size.
inline constexpr int head_size = 32;

struct ModelOptions {
  fw::Index symbols = 0;
  fw::Index layers = 2;
  fw::Index heads = 4;
  fw::Index window = 128;  ///< tokens that softmax attention keeps
};

inline const Kinds model_kinds{{"sum", "sum rule, ELU+1"},
                               {"delta", "delta rule, L2 keys"},
                               {"delta-elu", "delta rule, ELU+1"},
                               {"softmax", "softmax attention"}};

/// A model of that kind, its parameters still zero.
std::unique_ptr<LanguageModel<float>> make_char_model(const std::string& kind,
                                                      const ModelOptions& o);

/// The metadata of a checkpoint.
struct CheckpointInfo {
  std::string kind, alphabet;
  ModelOptions options;
};

fw::io::Metadata describe(const CheckpointInfo& info);
CheckpointInfo checkpoint_info(const fw::io::SafeTensors& file);

/// The text that char_lm wrote under a key. Throws std::invalid_argument for a file of another
/// program.
const std::string& noted(const fw::io::SafeTensors& file, const std::string& key);
