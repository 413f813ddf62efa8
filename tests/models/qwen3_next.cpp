#include <fastweights/models/qwen3_next.hpp>

#include "registry.hpp"

namespace {

template <class S> fw::networks::Network<S> build(const fw::models::Config& c) {
  return fw::models::qwen3_next<S>(c, test_options);
}

const Registration registered({"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"},
                              {build<double>, build<float>});

}  // namespace
