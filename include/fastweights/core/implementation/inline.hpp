#pragma once

/// \file
/// Functions that depend on no type are declared in a header and defined in the header of the same
/// name in implementation/. They are inline there, except in fastweights::compiled, which defines
/// them once.

#ifdef FASTWEIGHTS_COMPILED
#define FASTWEIGHTS_INLINE
#else
#define FASTWEIGHTS_INLINE inline
#endif
