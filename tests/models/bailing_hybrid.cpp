#include <fastweights/models/bailing_hybrid.hpp>

#include "registry.hpp"

namespace {

template <class S> fw::networks::Network<S> build(const fw::models::Config& c) {
  return fw::models::bailing_hybrid<S>(c, test_options);
}

const Registration registered({"bailing_hybrid"}, {.in_double = build<double>,
                                                   .in_float = build<float>,
                                                   .leaves = {{"values", ".keys"}},
                                                   .renamed = {{".attention", ".self_attn"}}});

}  // namespace
