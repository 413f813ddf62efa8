// The architectures of models/table/, which are compiled once.

#include <fastweights/models/table/groups.hpp>

#include "registry.hpp"

namespace {

using namespace fw::models;

// `architecture` has what the reference calls otherwise.
Architecture published(Architecture architecture, const std::string& model_type) {
  architecture.in_double = [=](const Config& c) {
    return architectures<double>().at(model_type).build(c, test_options);
  };
  architecture.in_float = [=](const Config& c) {
    return architectures<float>().at(model_type).build(c, test_options);
  };
  architecture.is_ignored = architectures<float>().at(model_type).is_ignored;
  return architecture;
}

struct Registered {
  Registered() {
    const auto add = [](const char* model_type, const Architecture& other = {}) {
      registry()[model_type] = published(other, model_type);
    };
    const std::map<std::string, std::string> keys{{"values", ".keys"}};
    for (const char* name : {"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "olmo_hybrid"})
      add(name);
    for (const char* name :
         {"mamba2", "bamba", "granitemoehybrid", "falcon_h1", "zamba2", "nemotron_h"})
      add(name, {.states_by_value = true});
    for (const char* name : {"mamba", "falcon_mamba", "jamba", "lfm2"}) add(name);
    add("recurrent_gemma", {.leaves = {{"recurrent_state", ".h"}}});
    add("rwkv", {.leaves = {{"att_x", "attention.previous.recent"},
                            {"ffn_x", "feed_forward.previous.recent"},
                            {"num", ".numerator"},
                            {"den", ".denominator"},
                            {"max", ".maximum"}}});
    add("rwkv7");
    registry()["RWKV7ForCausalLM"] = registry()["rwkv7"];
    add("bailing_hybrid", {.leaves = keys, .renamed = {{".attention", ".self_attn"}}});
    add("kimi_linear", {.leaves = keys, .renamed = {{".block_sparse_moe", ".mlp"}}});
    add("minimax", {.renamed = {{".block_sparse_moe", ".mlp"}}});
    add("xlstm", {.leaves = {{"m", ".log_scale"}}});
  }
};
const Registered registered;

}  // namespace
