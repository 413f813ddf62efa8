#include <fastweights/models/xlstm.hpp>

#include "registry.hpp"

namespace {

using namespace fw::models;

const Registration registered({"xlstm"},
                              {.in_double = [](const Config& c) { return xlstm<double>(c); },
                               .in_float = [](const Config& c) { return xlstm<float>(c); },
                               .leaves = {{"m", ".log_scale"}}});

}  // namespace
