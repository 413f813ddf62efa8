#pragma once

/// \file
/// Parts of the suite that are measured in a way of their own.

void add_continuous_memory();
void add_deferred();
void add_amx();  ///< nothing where the process may not use AMX
