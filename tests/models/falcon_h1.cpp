#include <fastweights/models/falcon_h1.hpp>
#include <fastweights/models/zamba2.hpp>

#include "mamba2.hpp"

namespace {

using namespace fw::models;

const Registration registered[] = {
    {{"falcon_h1"},
     by_value([](auto s, const Config& c) { return falcon_h1<decltype(s)>(c, test_options); })},
    {{"zamba2"},
     by_value([](auto s, const Config& c) { return zamba2<decltype(s)>(c, test_options); })}};

}  // namespace
