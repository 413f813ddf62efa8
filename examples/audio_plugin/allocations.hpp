#pragma once

/// This thread's calls of malloc and its relatives so far, by operator new and Eigen as well; −1
/// where they cannot be counted: without the GNU C library, and under sanitizers.
long allocations_of_thread();
