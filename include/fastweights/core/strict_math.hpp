#pragma once

/// \file
/// Included by headers whose results depend on IEEE arithmetic. -ffast-math removes the error terms
/// of compensated sums, and the tests for NaN and infinity.

#if !defined FASTWEIGHTS_ALLOW_FAST_MATH &&                                         \
    (defined __FAST_MATH__ || defined __ASSOCIATIVE_MATH__ || defined _M_FP_FAST || \
     (defined __FINITE_MATH_ONLY__ && __FINITE_MATH_ONLY__))
#error \
    "fastweights: -ffast-math removes compensated sums and tests for NaN; compile without it, or define FASTWEIGHTS_ALLOW_FAST_MATH to accept wrong sums"
#endif
