#pragma once

/// \file
/// Benchmarks with code of their own.

void add_continuous_memory();
void add_deferred();
void add_amx();  ///< adds nothing if the process may not use AMX
