// error: memory rule: `coefficients` or `correction` exists, but the kernels cannot use it
#include "example.hpp"

struct WrongCoefficients : Rule<> {
  static constexpr auto decay_kind = fw::DecayKind::none;
  static constexpr bool has_delta_term = false;
  template <class StateLike>
  fw::TokenCoefficients<float> coefficients(StateLike&, const fw::WriteToken<Rule>&) const;
};
static_assert(fw::assert_memory<WrongCoefficients>());
