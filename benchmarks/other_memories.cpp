#include <fastweights/memories/hebbian.hpp>
#include <fastweights/memories/key_value_cache.hpp>
#include <fastweights/memories/programmer1991.hpp>

#include "measure.hpp"

namespace {

using fw::Index;

/// Counted as the sum rule, without the fading.
struct Hebbian {
  static constexpr const char* name = "hebbian";
  template <class S, int D> static auto make(Index d) { return fw::HebbianMemory<S, D, D>(d, d); }
  static double flops(double d) { return 4 * d * d; }
};

/// Counted without the d² activations.
struct Programmer {
  static constexpr const char* name = "programmer1991";
  template <class S, int D> static auto make(Index d) { return fw::Programmer1991<S, D, D>(d, d); }
  static double flops(double d) { return 4 * d * d; }
};

/// Holds 1024 tokens; counted as if it were full from the first.
struct Cache {
  static constexpr const char* name = "key_value_cache";
  static constexpr Index capacity = 1024;
  static constexpr double passes = 1;  // written at one token only
  template <class S, int D> static auto make(Index d) {
    return fw::KeyValueCache<S, D, D>(d, d, {capacity});
  }
  static double flops(double d) { return 4 * d * static_cast<double>(capacity); }
};

[[maybe_unused]] const bool added =
    measure::add_some<Hebbian>() && measure::add_some<Programmer>() && measure::add_some<Cache>();

}  // namespace
