#pragma once

#include <fastweights/models/architectures.hpp>
#include <fastweights/models/qwen3_next.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Qwen3-Next and Qwen3.5.
template <class S> void add_qwen(Architectures<S>& known) {
  known.add({"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"},
            [](auto& c, auto& o) { return qwen3_next<S>(c, o); });
}

}  // namespace fw::models
