#pragma once

#include <fastweights/models/architectures.hpp>
#include <fastweights/models/lfm2.hpp>
#include <fastweights/models/recurrent_gemma.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Models of short convolutions or elementwise recurrences beside attention.
template <class S> void add_convolutions(Architectures<S>& known) {
  known.add({"lfm2"}, [](auto& c, auto& o) { return lfm2<S>(c, o); });
  known.add({"recurrent_gemma"}, [](auto& c, auto& o) { return recurrent_gemma<S>(c, o); });
}

}  // namespace fw::models
