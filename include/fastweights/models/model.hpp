#pragma once

#include <fastweights/networks/network.hpp>
#include <filesystem>
#include <functional>
#include <optional>

/// \file
/// A published model in one call:
///
///     auto model = fw::models::load<float>("Qwen3.5-0.8B", {.weights = fw::bfloat16});
///
/// A program that links fastweights::compiled_models has all architectures compiled once, in float
/// and double. Any other program that includes this header compiles all of them, for minutes; it
/// rather takes an architecture's own header (see architectures.hpp).

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Options of load.
struct LoadModelOptions {
  /// Tokens that a state has room for from the start; one more is a std::length_error. 0: caches
  /// grow.
  Index context = 0;
  /// Tokens that attention looks back, if config.json says no fewer. 0: all.
  Index window = 0;
  /// Form of the matrices of linear maps and embeddings; absent: as the scalar.
  std::optional<networks::WeightType> weights = {};
  /// Called before the i-th of n tensors.
  std::function<void(std::size_t i, std::size_t n)> progress = {};
};

/// The model of a folder as it was downloaded: config.json and safetensors files. Throws
/// std::invalid_argument for an architecture or an option that the library does not have, and
/// fw::io::SafeTensorsError for files that do not fit (see load_weights).
template <class S>
networks::Network<S> load(const std::filesystem::path& folder,
                          const LoadModelOptions& options = {});

}  // namespace fw::models

#ifndef FASTWEIGHTS_COMPILED_MODELS
#include <fastweights/models/implementation/model.hpp>
#endif
