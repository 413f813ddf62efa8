#pragma once

#include <string>

/// \file
/// System calls that fail on request. The functions of the C library are replaced in this program.

namespace calls {

/// From now on, the `number`th call of that name fails with an error (errno). The numbers begin
/// at 1.
void fail(const std::string& name, int number, int error);

void fail_none();

/// True if that call has come.
bool has_failed();

}  // namespace calls
