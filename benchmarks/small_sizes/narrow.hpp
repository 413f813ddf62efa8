#pragma once

namespace small_sizes {

/// Prints the times of a write and a step of the delta rule in float, dynamic and fixed, for d_v in
/// {1, 2, 4, 8, 16, 64} and d_k in {16, 64, 256}.
void print_narrow();

}  // namespace small_sizes
