#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fastweights/algorithms/checked.hpp>
#include <fastweights/core/finite.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/training/adamw.hpp>
#include <string>

#ifndef __FAST_MATH__
#error "compile this test with -ffast-math"
#endif

namespace {

int failures = 0;

void check(bool passed, const char* what) {
  std::printf("%s %s\n", passed ? "passed" : "FAILED", what);
  failures += passed ? 0 : 1;
}

// Not known to the compiler.
volatile std::uint32_t nan_bits = 0x7fc00000, infinity_bits = 0x7f800000;
float number(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

template <class F> bool refuses(const std::string& text, const F& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return std::string(e.what()).find(text) != std::string::npos;
  }
  return false;
}

void check_step(float bad) {
  const fw::DeltaRule<float> memory({.key_size = 17});
  auto state = fw::initial_state(memory);
  const Eigen::VectorXf good = Eigen::VectorXf::Constant(17, 0.2f);
  Eigen::VectorXf key = good, y(17);
  key[9] = bad;
  check(refuses("DeltaRule: key[9] is",
                [&] {
                  fw::checked_step(memory, state, {key, good, 1.0f}, {good}, {y});
                }),
        "checked_step: key");
  check(refuses("DeltaRule: beta is",
                [&] {
                  fw::checked_step(memory, state, {good, good, bad}, {good}, {y});
                }),
        "checked_step: beta");
  check(state.W.isZero(0), "checked_step: the state is unchanged");
  check(fw::all_finite(state), "all_finite: a finite state");
  state.W(3, 4) = bad;
  check(!fw::all_finite(state), "all_finite: a state");
}

struct Model {
  Eigen::MatrixXf weight = Eigen::MatrixXf::Zero(3, 17);
  Eigen::VectorXf bias = Eigen::VectorXf::Zero(3);
  static constexpr auto names = fw::names("weight", "bias");
};

void check_adamw(float bad) {
  Model layer;
  layer.weight.setOnes();
  fw::AdamW<Model> optimiser(layer);
  auto gradient = fw::zero_gradient(layer);
  check(refuses("AdamW: learning_rate is", [&] { optimiser.step(layer, gradient, double(bad)); }),
        "AdamW: learning rate");
  check(refuses("AdamW: beta1 is", [&] { fw::AdamW<Model>(layer, {.beta1 = double(bad)}); }),
        "AdamW: beta1");
  gradient.weight(2, 5) = bad;
  check(refuses("weight is not finite", [&] { optimiser.step(layer, gradient, 0.1); }),
        "AdamW: gradient");
  check((layer.weight.array() == 1).all() && optimiser.first.weight.isZero(0),
        "AdamW: weights and moments are unchanged");
  gradient.weight(2, 5) = 1e20f;
  optimiser.step(layer, gradient, 0.1);
  check(fw::all_finite(layer) && fw::all_finite(optimiser.second), "AdamW: gradient of 1e20");
}

}  // namespace

int main() {
  for (const float bad : {number(nan_bits), number(infinity_bits)}) {
    check_step(bad);
    check_adamw(bad);
  }
  return failures == 0 ? 0 : 1;
}
