#pragma once

#include <fastweights/models/architectures.hpp>
#include <fastweights/models/rwkv4.hpp>
#include <fastweights/models/rwkv7.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {

/// RWKV-4 and RWKV-7.
template <class S> void add_rwkv(Architectures<S>& known) {
  known.add({"rwkv"}, [](auto& c, auto& o) { return rwkv4<S>(c, o); });
  known.add({"rwkv7"}, [](auto& c, auto& o) { return rwkv7<S>(c, o); });
}

}  // namespace fw::models
