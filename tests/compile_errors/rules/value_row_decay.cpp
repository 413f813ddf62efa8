// error: or W decays by value row, which takes a scan of kernels/scan/row_scan.hpp
#include "example.hpp"

struct ValueRowDecay : Rule<> {
  static constexpr auto decay_kind = fw::DecayKind::per_value_row;
  static constexpr bool has_delta_term = false;
  template <class StateLike>
  fw::TokenCoefficients<float> coefficients(StateLike&, const fw::WriteToken<Rule>&,
                                            const fw::ReadToken<Rule>&) const;
};
static_assert(fw::assert_memory<ValueRowDecay>());
