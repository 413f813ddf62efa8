#pragma once

#include <fastweights/kernels/scan/pair.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The inputs of a step; members as in Correction. With one decay per column, `lookup` includes the
/// decays if W is read after its decay. `query` includes them if `reads_new_state` is false.
template <class S> struct StepToken : Correction<S> {
  S key_query;                   // b·q
  S lookup_scale;                // of W a in e
  S* rounding_errors = nullptr;  // of W, with W's stride; see DecayKind::compensated

  /// Copies member by member: a copy of the struct in wide registers would wait for the narrow
  /// stores that have just filled it, as long as a step of a small state takes.
  EIGEN_ALWAYS_INLINE void set(const Correction<S>& c) {
    this->lookup = c.lookup;
    this->key = c.key;
    this->value = c.value;
    this->query = c.query;
    this->bonus_key = c.bonus_key;
    this->betas = c.betas;
    this->decays = c.decays;
    this->output = c.output;
    this->error = c.error;
    this->coefficients.value_scale = c.coefficients.value_scale;
    this->coefficients.retrieved_scale = c.coefficients.retrieved_scale;
    this->coefficients.beta = c.coefficients.beta;
    this->coefficients.read_scale = c.coefficients.read_scale;
    this->coefficients.decay = c.coefficients.decay;
  }
};

}  // namespace fw::detail
