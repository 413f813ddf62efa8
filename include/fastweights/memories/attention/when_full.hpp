#pragma once

#include <fastweights/core/abi.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Behaviour of a full cache when more comes: a token of KeyValueCache, a segment of
/// CachedSegments.
enum class WhenFull {
  slide,   ///< overwrite the oldest
  refuse,  ///< throw std::length_error
  grow     ///< make more room, on the heap
};

}  // namespace fw
