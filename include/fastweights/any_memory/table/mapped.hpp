#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

// A memory behind a feature map, with keys of key_size rows before the map. `last` are arguments of
// the memory after its sizes.
template <class M, class Options, class Map, class... Last>
auto mapped(Options& o, const Map& map, const Last&... last) {
  const Sizes<> sizes = o.sizes();
  check_size<Dynamic>(M::name, "key_size", sizes.key_size);
  return FeatureMapped<M, Map>(M({map.features(sizes.key_size), sizes.value_size}, last...),
                               sizes.key_size, map);
}

}  // namespace fw::detail
