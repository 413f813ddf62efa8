#pragma once

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

/// From here on denormal numbers become 0 in this thread, if the processor can do that. x86
/// computes with them a hundred times slower, and gradients that fade over many tokens become
/// denormal.
inline void flush_denormals() {
#ifdef __SSE2__
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush results to zero, take operands as zero
#endif
}
