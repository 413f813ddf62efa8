#include <fastweights/models/fla/mesa_net.hpp>

#include "registry.hpp"

namespace {

const Registration registered({"MesaNet"},
                              {.in_double = fw::models::fla::mesa_net<double>,
                               .in_float = fw::models::fla::mesa_net<float>,
                               .leaves = {{"final_state_a", ".G"}, {"final_state_b", ".W"}}});

}  // namespace
