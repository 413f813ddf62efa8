#include "mamba2.hpp"

#include <fastweights/models/bamba.hpp>
#include <fastweights/models/granite_hybrid.hpp>
#include <fastweights/models/mamba2.hpp>

namespace {

using namespace fw::models;

const Registration registered[] = {
    {{"mamba2"},
     by_value([](auto s, const Config& c) { return mamba2<decltype(s)>(c, test_options); })},
    {{"bamba"},
     by_value([](auto s, const Config& c) { return bamba<decltype(s)>(c, test_options); })},
    {{"granitemoehybrid"}, by_value([](auto s, const Config& c) {
       return granite_hybrid<decltype(s)>(c, test_options);
     })}};

}  // namespace
