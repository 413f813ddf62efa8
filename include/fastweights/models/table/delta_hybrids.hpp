#pragma once

#include <fastweights/models/architectures.hpp>
#include <fastweights/models/kimi_linear.hpp>
#include <fastweights/models/olmo_hybrid.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Kimi Linear and OLMo Hybrid.
template <class S> void add_delta_hybrids(Architectures<S>& known) {
  known.add({"kimi_linear"}, [](auto& c, auto& o) { return kimi_linear<S>(c, o); });
  known.add({"olmo_hybrid"}, [](auto& c, auto& o) { return olmo_hybrid<S>(c, o); });
}

}  // namespace fw::models
