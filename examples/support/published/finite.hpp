#pragma once

#include <cmath>
#include <fastweights/io/safetensors.hpp>
#include <string>

/// \file
/// Files of states from strangers.

/// Throws if a tensor has an entry that is NaN or infinite as a float, whatever the type in the
/// file: load_state converts types, and takes any number. Names the tensor.
inline void check_finite(const fw::io::SafeTensors& file) {
  using fw::io::DType;
  for (const std::string& name : file.names()) {
    const DType type = file.dtype(name);
    if (type != DType::F16 && type != DType::BF16 && type != DType::F32 && type != DType::F64)
      continue;
    for (const float x : file.values<float>(name))
      if (!std::isfinite(x))
        file.fail(name, "has the entry " + std::to_string(x) + ", expected a finite number");
  }
}
