#include <fastweights/models/kimi_linear.hpp>
#include <fastweights/models/olmo_hybrid.hpp>

#include "published/architectures.hpp"

using fw::models::Config;
using fw::models::ModelOptions;

void add_delta_hybrids(Architectures& known) {
  known.add({"kimi_linear"}, [](const Config& c, const ModelOptions& o) {
    return fw::models::kimi_linear<float>(c, o);
  });
  known.add({"olmo_hybrid"}, [](const Config& c, const ModelOptions& o) {
    return fw::models::olmo_hybrid<float>(c, o);
  });
}
