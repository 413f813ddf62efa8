#include "feature_maps/map_of.hpp"

namespace feature_map_checks {

template std::unique_ptr<AnyMap<float>> make_map(std::size_t kind, Index d);

}  // namespace feature_map_checks
