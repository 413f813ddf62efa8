#include <fastweights/memories/rules/momentum_delta_rule.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "kernels/gradients.hpp"

// Rules with a momentum. Tokens go in blocks of 32, rows in panels.
namespace {

template <class S> using Titans = fw::TitansMemory<S>;
template <class S> using Momentum = fw::MomentumDeltaRule<S>;
using Both = gradients::Rules<Titans, Momentum>;

TEST_CASE("backward of a momentum: sizes", "[kernels]") {
  for (const fw::Index d : {1, 2, 3, 17, 33, 63, 64, 65, 100}) Both::check({d, d}, 5);
  for (const fw::Index dv : {1, 9, 24, 40})
    for (const fw::Index dk : {1, 3, 20}) Both::check({dk, dv}, 5);
}

TEST_CASE("backward of a momentum: sequences of every length", "[kernels]") {
  for (const fw::Index steps : {1, 2, 31, 32, 33, 63, 64, 65, 100}) Both::check({6, 19}, steps);
}

TEST_CASE("backward of a momentum: numbers of 0 and 1", "[kernels]") {
  for (const double number : {0.0, 1.0})
    Both::check({5, 18}, 40, [number](auto& all) {
      using S = typename std::remove_cvref_t<decltype(all.inputs.key)>::Scalar;
      all.inputs.momentum.setConstant(S(number == 1 ? 0.9 : 0));
      all.inputs.rate.setConstant(S(number));
      all.inputs.key *= S(0.1);
      if constexpr (requires { all.inputs.forget; }) all.inputs.forget.setConstant(S(number));
      if constexpr (requires { all.inputs.beta; }) all.inputs.beta.setConstant(S(number));
      if constexpr (requires { all.inputs.decay; }) all.inputs.decay.setConstant(S(number));
    });
}

// The limit is 100 units of rounding of float.
TEST_CASE("backward of a momentum: float", "[kernels]") {
  for (const fw::Index d : {3, 17, 64})
    gradients::check(
        Titans<float>({d, d}), Titans<double>({d, d}), 70, [](auto&) {}, 5e7);
}

}  // namespace
