#include <fastweights/models/kimi_linear.hpp>

#include "registry.hpp"

namespace {

template <class S> fw::networks::Network<S> build(const fw::models::Config& c) {
  return fw::models::kimi_linear<S>(c, test_options);
}

const Registration registered({"kimi_linear"}, {.in_double = build<double>,
                                                .in_float = build<float>,
                                                .leaves = {{"values", ".keys"}},
                                                .renamed = {{".block_sparse_moe", ".mlp"}}});

}  // namespace
