#include <fastweights/models/rwkv7.hpp>

#include "published/architectures.hpp"

using fw::models::Config;
using fw::models::ModelOptions;

void add_rwkv(Architectures& known) {
  known.add({"rwkv7"},
            [](const Config& c, const ModelOptions& o) { return fw::models::rwkv7<float>(c, o); });
}
