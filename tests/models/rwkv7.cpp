#include <fastweights/models/rwkv7.hpp>

#include "registry.hpp"

namespace {

template <class S> fw::networks::Network<S> build(const fw::models::Config& c) {
  return fw::models::rwkv7<S>(c, test_options);
}

const Registration registered({"rwkv7", "RWKV7ForCausalLM"}, {build<double>, build<float>});

}  // namespace
