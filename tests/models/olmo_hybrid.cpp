#include <fastweights/models/olmo_hybrid.hpp>

#include "registry.hpp"

namespace {

template <class S> fw::networks::Network<S> build(const fw::models::Config& c) {
  return fw::models::olmo_hybrid<S>(c, test_options);
}

const Registration registered({"olmo_hybrid"}, {build<double>, build<float>});

}  // namespace
