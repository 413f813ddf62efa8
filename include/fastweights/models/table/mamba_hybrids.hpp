#pragma once

#include <fastweights/models/architectures.hpp>
#include <fastweights/models/bamba.hpp>
#include <fastweights/models/falcon_h1.hpp>
#include <fastweights/models/granite_hybrid.hpp>
#include <fastweights/models/mamba2.hpp>
#include <fastweights/models/nemotron_h.hpp>
#include <fastweights/models/zamba2.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Mamba-2 and the hybrids with its mixer.
template <class S> void add_mamba_hybrids(Architectures<S>& known) {
  known.add({"mamba2"}, [](auto& c, auto& o) { return mamba2<S>(c, o); });
  known.add({"bamba"}, [](auto& c, auto& o) { return bamba<S>(c, o); });
  known.add({"granitemoehybrid"}, [](auto& c, auto& o) { return granite_hybrid<S>(c, o); });
  known.add({"falcon_h1"}, [](auto& c, auto& o) { return falcon_h1<S>(c, o); });
  known.add({"zamba2"}, [](auto& c, auto& o) { return zamba2<S>(c, o); });
  known.add(
      {"nemotron_h"}, [](auto& c, auto& o) { return nemotron_h<S>(c, o); }, is_nemotron_extra);
}

}  // namespace fw::models
