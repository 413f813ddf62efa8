#include <fastweights/models/minimax.hpp>

#include "registry.hpp"

namespace {

template <class S> fw::networks::Network<S> build(const fw::models::Config& c) {
  return fw::models::minimax<S>(c, test_options);
}

const Registration registered({"minimax"}, {.in_double = build<double>,
                                            .in_float = build<float>,
                                            .renamed = {{".block_sparse_moe", ".mlp"}},
                                            .is_ignored = fw::models::is_minimax_table});

}  // namespace
