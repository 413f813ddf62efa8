#include "layout.hpp"

namespace reference {

// The memories multiply by 1/√K themselves. Caches have room for the whole sequence.
MemoryCases attention_cases() {
  const std::map<std::string, Number> room = {{"capacity", axis("q", 1)}};
  const Layout segments = {.inputs = {{"pooled", "p"}, {"segment_query", "u"}},
                           .state = {{"memory.W", {"initial_state", "final_state"}}},
                           .scales_query = false};
  const auto segment_options = [](double restart) {
    return std::map<std::string, Number>{{"segment", setting("segment")},
                                         {"pooled_size", axis("p", 3)},
                                         {"capacity", {4}},
                                         {"restart", {restart}}};
  };
  return {
      {"softmax_attn",
       {"KeyValueCache", {.scales_query = false}, {{"capacity", axis("q", 1)}, {"refuse", {1}}}}},
      {"forgetting_attn", {"ForgettingAttention", {.state = {}, .scales_query = false}, room}},
      {"path_attn",
       {"PathAttention",
        {.inputs = {{"reflection", "w"}}, .state = {}, .scales_query = false},
        room}},
      {"deltaformer", {"DeltaFormer", {.state = {}, .scales_query = false}, room}},
      {"parallax",
       {"Parallax", {.inputs = {{"correction", "r"}}, .state = {}, .scales_query = false}, room}},
      {"log_linear_attn",
       {"LogLinearAttention",
        {.inputs = {{"scales", "level_scales"}}, .state = {}, .scales_query = false},
        {{"levels", axis("level_scales", 3)}}}},
      {"own_memory_caching_grm", {"CachedDeltaRule", segments, segment_options(1)}},
      {"own_memory_caching_grm_continued", {"CachedDeltaRule", segments, segment_options(0)}},
  };
}

}  // namespace reference
