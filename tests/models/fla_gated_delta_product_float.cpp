#include <fastweights/models/fla/gated_delta_product.hpp>

fw::networks::Network<float> gated_delta_product_in_float(const fw::models::Config& c) {
  return fw::models::fla::gated_delta_product<float>(c);
}
