#include <fastweights/models/qwen3_next.hpp>

#include "published/architectures.hpp"

using fw::models::Config;
using fw::models::ModelOptions;

void add_qwen(Architectures& known) {
  known.add(
      {"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"},
      [](const Config& c, const ModelOptions& o) { return fw::models::qwen3_next<float>(c, o); });
}
