#include <fastweights/models/fla/gated_delta_product.hpp>

#include "registry.hpp"

// Defined in a source of its own, to keep the compiler's memory small.
fw::networks::Network<float> gated_delta_product_in_float(const fw::models::Config& c);

namespace {

const Registration registered({"GatedDeltaProduct"}, {fw::models::fla::gated_delta_product<double>,
                                                      gated_delta_product_in_float});

}  // namespace
