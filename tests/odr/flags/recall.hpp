#pragma once

/// The sum of all outputs of a delta rule (d_k 17, d_v 19, β 1/2) that writes and reads `tokens`
/// tokens. Arrays are column-major, keys 17×tokens and values 19×tokens. Each function is compiled
/// for its instruction set.
float recall_sse2(const float* keys, const float* values, int tokens);
float recall_avx2(const float* keys, const float* values, int tokens);
