#pragma once

#include <fastweights/models/architectures.hpp>

/// \file
/// The groups of architectures. Each is a header and, in fastweights::compiled_models, a source for
/// each scalar, since a model takes seconds to compile.

#define FASTWEIGHTS_MODEL_GROUPS(GROUP) \
  GROUP(qwen)                           \
  GROUP(rwkv)                           \
  GROUP(delta_hybrids)                  \
  GROUP(mamba)                          \
  GROUP(mamba_hybrids)                  \
  GROUP(convolutions)                   \
  GROUP(others)

namespace fw::inline FASTWEIGHTS_ABI::models {

#define FASTWEIGHTS_GROUP(name) template <class S> void add_##name(Architectures<S>& known);
FASTWEIGHTS_MODEL_GROUPS(FASTWEIGHTS_GROUP)
#undef FASTWEIGHTS_GROUP

/// Every architecture of the library.
template <class S> const Architectures<S>& architectures() {
  static const Architectures<S> all = [] {
    Architectures<S> known;
#define FASTWEIGHTS_GROUP(name) add_##name(known);
    FASTWEIGHTS_MODEL_GROUPS(FASTWEIGHTS_GROUP)
#undef FASTWEIGHTS_GROUP
    return known;
  }();
  return all;
}

#ifdef FASTWEIGHTS_COMPILED_MODELS
extern template const Architectures<float>& architectures();
extern template const Architectures<double>& architectures();
#endif

}  // namespace fw::models
