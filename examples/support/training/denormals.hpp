#pragma once

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

/// Numbers below the smallest normal one become 0 in this thread from here on, where the processor
/// can: x86 computes with them a hundred times slower, and gradients that fade over many tokens end
/// there.
inline void flush_denormals() {
#ifdef __SSE2__
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush results to zero, take operands as zero
#endif
}
