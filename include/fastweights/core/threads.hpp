#pragma once

/// \file
/// Buffers that belong to a thread: those of scans, of large products and of writes to a
/// ContinuousMemory. Steps of other memories have none.
///
/// On bare metal a compiler turns `thread_local` into a call of __aeabi_read_tp, which no library
/// defines there. A program with one thread defines FASTWEIGHTS_SINGLE_THREADED in all its sources,
/// and the buffers are static. It must not be defined where two threads, or two tasks of a
/// real-time operating system, run sequences, layers or training, or write to a ContinuousMemory.

#ifdef FASTWEIGHTS_SINGLE_THREADED
#ifdef _OPENMP
#error \
    "fastweights: FASTWEIGHTS_SINGLE_THREADED makes buffers static, and OpenMP uses threads; compile without OpenMP"
#endif
#define FASTWEIGHTS_THREAD_LOCAL static
#else
#define FASTWEIGHTS_THREAD_LOCAL thread_local
#endif
