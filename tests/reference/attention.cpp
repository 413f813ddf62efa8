#include <fastweights/memories/attention/delta_former.hpp>
#include <fastweights/memories/attention/forgetting_attention.hpp>
#include <fastweights/memories/attention/parallax.hpp>
#include <fastweights/memories/attention/path_attention.hpp>
#include <fastweights/memories/rules/log_linear_attention.hpp>

#include "rule_run.hpp"

namespace reference {

namespace {

// The scale is that of the memory.
template <class M> void run(Case& file, Layout layout) {
  layout.scales_query = false;
  layout.state = {};
  run(file, layout, [](Index dk, Index dv, Index steps, Index) { return M({dk, dv}, {steps}); });
}

void forgetting(Case& file) { run<fw::ForgettingAttention<double>>(file, {}); }

void path(Case& file) {
  Layout layout;
  layout.inputs["reflection"] = "w";
  run<fw::PathAttention<double>>(file, layout);
}

void delta_former(Case& file) { run<fw::DeltaFormer<double>>(file, {}); }

void parallax(Case& file) {
  Layout layout;
  layout.inputs["correction"] = "r";
  run<fw::Parallax<double>>(file, layout);
}

void log_linear(Case& file) {
  Layout layout;
  layout.inputs["scales"] = "level_scales";
  layout.state = {};
  layout.scales_query = false;
  const Index levels = file["level_scales"].axis(3);
  run(file, layout, [levels](Index dk, Index dv, Index, Index) {
    return fw::LogLinearAttention<double>({dk, dv}, levels);
  });
}

}  // namespace

std::map<std::string, Test> attention_tests() {
  return {{"forgetting_attn", forgetting},
          {"path_attn", path},
          {"deltaformer", delta_former},
          {"parallax", parallax},
          {"log_linear_attn", log_linear}};
}

}  // namespace reference
