#include <fastweights/models/bamba.hpp>
#include <fastweights/models/falcon_h1.hpp>
#include <fastweights/models/granite_hybrid.hpp>
#include <fastweights/models/mamba2.hpp>
#include <fastweights/models/nemotron_h.hpp>
#include <fastweights/models/zamba2.hpp>

#include "published/architectures.hpp"

using fw::models::Config;
using fw::models::ModelOptions;

void add_mamba_hybrids(Architectures& known) {
  known.add({"mamba2"},
            [](const Config& c, const ModelOptions& o) { return fw::models::mamba2<float>(c, o); });
  known.add({"bamba"},
            [](const Config& c, const ModelOptions& o) { return fw::models::bamba<float>(c, o); });
  known.add({"granitemoehybrid"}, [](const Config& c, const ModelOptions& o) {
    return fw::models::granite_hybrid<float>(c, o);
  });
  known.add({"falcon_h1"}, [](const Config& c, const ModelOptions& o) {
    return fw::models::falcon_h1<float>(c, o);
  });
  known.add({"zamba2"},
            [](const Config& c, const ModelOptions& o) { return fw::models::zamba2<float>(c, o); });
  known.add(
      {"nemotron_h"},
      [](const Config& c, const ModelOptions& o) { return fw::models::nemotron_h<float>(c, o); },
      fw::models::is_nemotron_extra);
}
