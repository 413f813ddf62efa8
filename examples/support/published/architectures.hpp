#pragma once

#include <fastweights/models/architectures.hpp>

using Architectures = fw::models::Architectures<float>;

/// All that the examples know. Each group has a source of its own, since it takes seconds to
/// compile.
const Architectures& published_architectures();

void add_qwen(Architectures& known);
void add_rwkv(Architectures& known);
void add_delta_hybrids(Architectures& known);
void add_mamba_hybrids(Architectures& known);
void add_others(Architectures& known);
