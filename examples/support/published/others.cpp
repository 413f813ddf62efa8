#include <fastweights/models/bailing_hybrid.hpp>
#include <fastweights/models/minimax.hpp>
#include <fastweights/models/xlstm.hpp>

#include "published/architectures.hpp"

using fw::models::Config;
using fw::models::ModelOptions;

void add_others(Architectures& known) {
  known.add({"bailing_hybrid"}, [](const Config& c, const ModelOptions& o) {
    return fw::models::bailing_hybrid<float>(c, o);
  });
  known.add(
      {"minimax"},
      [](const Config& c, const ModelOptions& o) { return fw::models::minimax<float>(c, o); },
      fw::models::is_minimax_table);
  known.add({"xlstm"},
            [](const Config& c, const ModelOptions& o) { return fw::models::xlstm<float>(c, o); });
}
