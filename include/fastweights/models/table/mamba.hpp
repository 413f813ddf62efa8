#pragma once

#include <fastweights/models/architectures.hpp>
#include <fastweights/models/jamba.hpp>
#include <fastweights/models/mamba.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Mamba and models with its mixer.
template <class S> void add_mamba(Architectures<S>& known) {
  known.add({"mamba"}, [](auto& c, auto& o) { return mamba<S>(c, o); });
  known.add({"falcon_mamba"}, [](auto& c, auto& o) { return falcon_mamba<S>(c, o); });
  known.add({"jamba"}, [](auto& c, auto& o) { return jamba<S>(c, o); });
}

}  // namespace fw::models
