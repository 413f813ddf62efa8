#include <fastweights/algorithms/scan.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/testing/gradient_check.hpp>

#include "compile_times/gated_rule.hpp"
#include "kernels/compare.hpp"

/// \file
/// The rule of docs/adding_a_rule.md with the kernels, as that page's section 6 says.

namespace {

template <class S> struct KernelRule : GatedRule<S> {
  static constexpr auto decay_kind = fw::DecayKind::scalar;
  static constexpr bool has_delta_term = false;
  template <class T> KernelRule<T> cast() const { return {{this->dk, this->dv}}; }

  template <class StateLike>
  fw::TokenCoefficients<S> coefficients(StateLike&, const fw::WriteToken<KernelRule>& t,
                                        const fw::ReadToken<KernelRule>&) const {
    return {.beta = t.beta, .decay = S(1) - t.beta};
  }
};

TEST_CASE("kernels: a rule of one's own", "[kernels]") {
  static_assert(fw::assert_memory<KernelRule<float>>() && fw::KernelRule<KernelRule<float>>);
  static_assert(fw::FusedStep<KernelRule<float>> && fw::CustomScan<KernelRule<float>>);
  for (const Index d : {1, 3, 17, 64, 65}) check(KernelRule<double>{{d, d}}, 9);
  check(fw::Deferred(KernelRule<double>{{.dk = 5, .dv = 17}}), 20);
  CHECK(fw::testing::gradient_error(KernelRule<double>{{.dk = 4, .dv = 5}}, 20).worst <= 1e-12);
}

}  // namespace
