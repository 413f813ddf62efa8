// The cost of a small config.json before any tensor is seen.

#include <fastweights/models/table/groups.hpp>

#include "heap.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace {

using fw::models::Config;
using Json = nlohmann::json;

const auto& known = fw::models::architectures<float>();

Config zamba(int layers) {
  return Config(Json{{"model_type", "zamba2"},
                     {"vocab_size", 7},
                     {"hidden_size", 4},
                     {"num_hidden_layers", layers},
                     {"layers_block_type", std::vector<std::string>(std::size_t(layers), "hybrid")},
                     {"n_mamba_heads", 2},
                     {"mamba_d_state", 2},
                     {"num_attention_heads", 2},
                     {"intermediate_size", 3},
                     {"adapter_rank", 1},
                     {"use_shared_attention_adapter", true},
                     {"rms_norm_eps", 1e-5}});
}

Config experts(int count) {
  return Config(Json{{"model_type", "qwen3_5_moe_text"},
                     {"vocab_size", 7},
                     {"hidden_size", 4},
                     {"num_hidden_layers", 4},
                     {"num_key_value_heads", 1},
                     {"num_experts", count},
                     {"num_experts_per_tok", 1},
                     {"moe_intermediate_size", 1},
                     {"shared_expert_intermediate_size", 4},
                     {"num_attention_heads", 1},
                     {"linear_conv_kernel_dim", 2},
                     {"linear_num_key_heads", 1},
                     {"linear_num_value_heads", 1},
                     {"linear_key_head_dim", 2},
                     {"linear_value_head_dim", 2}});
}

TEST_CASE("layers that share weights cost memory in proportion to their number", "[bad files]") {
  std::size_t before = 0;
  for (const int layers : {50, 100, 200, 400}) {
    const Config config = zamba(layers);
    const std::size_t peak = heap::peak_of([&] { known.build(config, {.context = 1}); });
    INFO(layers << " layers: " << peak << " bytes");
    CHECK(peak > 1000);
    if (before > 0) CHECK(double(peak) < 2.3 * double(before));
    before = peak;
  }
}

TEST_CASE("stacked experts cost the same memory whatever their number is", "[bad files]") {
  for (const int count : {1 << 10, 1 << 14, 1 << 18, 1 << 22}) {
    const Config config = experts(count);
    INFO(count);
    CHECK(heap::peak_of([&] { known.build(config, {.context = 1, .stacked_experts = true}); }) <
          (1U << 20U));
  }
}

TEST_CASE("too many experts with tensors of their own are refused at once", "[bad files]") {
  const Config config = experts(1 << 22);
  const auto build = [&] { known.build(config, {.context = 1}); };
  CHECK(error_of(build).find("mlp.experts: 4194304 experts, expected at most 65536") !=
        std::string::npos);
  CHECK(heap::peak_of([&] { error_of(build); }) < (1U << 20U));
}

}  // namespace
