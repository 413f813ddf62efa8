#pragma once

#include <fastweights/models/checkpoint.hpp>
#include <fastweights/models/load.hpp>
#include <fastweights/models/model.hpp>
#include <fastweights/models/table/groups.hpp>
#ifndef FASTWEIGHTS_COMPILED_MODELS
#include <fastweights/models/table/convolutions.hpp>
#include <fastweights/models/table/delta_hybrids.hpp>
#include <fastweights/models/table/mamba.hpp>
#include <fastweights/models/table/mamba_hybrids.hpp>
#include <fastweights/models/table/others.hpp>
#include <fastweights/models/table/qwen.hpp>
#include <fastweights/models/table/rwkv.hpp>
#endif

namespace fw::inline FASTWEIGHTS_ABI::models {

template <class S>
networks::Network<S> load(const std::filesystem::path& folder, const LoadModelOptions& options) {
  const Checkpoint files = Checkpoint::read(folder);
  const Architectures<S>& known = architectures<S>();
  networks::Network<S> network =
      known.build(files.config(), model_options(files, options.context, options.window));
  load_weights(network, files,
               {.is_ignored = known.is_ignored(files.config()),
                .progress = options.progress,
                .weights = options.weights});
  return network;
}

}  // namespace fw::models
