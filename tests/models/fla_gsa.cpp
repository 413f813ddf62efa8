#include <fastweights/models/fla/gsa.hpp>

#include "registry.hpp"

namespace {

const Registration registered({"GatedSlotAttention"}, {.in_double = fw::models::fla::gsa<double>,
                                                       .in_float = fw::models::fla::gsa<float>,
                                                       .leaves = {{"final_state_a", ".keys"},
                                                                  {"final_state_b", ".values"}}});

}  // namespace
