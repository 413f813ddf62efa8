// With EIGEN_NO_MALLOC, every use of the heap in Eigen is a failed assertion. Here an assertion
// counts, so the checks of the folder allocation show that no step has one. Unlike those checks,
// which replace malloc, they run under any system and sanitizer.
#define EIGEN_NO_MALLOC
namespace {
long failed_assertions = 0;
}
#define eigen_assert(condition) static_cast<void>((condition) ? 0 : ++failed_assertions)

#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/fast_weight_memory.hpp>

#include "../allocation/typed_check.hpp"

// Locks and system calls are left to the folder allocation.
Usage usage() { return {.allocations = failed_assertions}; }
bool can_watch_system_calls() { return false; }
void watch_system_calls() {}
long system_calls() { return 0; }

int main() {
  const long control = usage_of([] { Eigen::MatrixXf(10, 10).setZero(); }).allocations;
  std::printf("an Eigen matrix: %ld allocations (the control: at least 1)\n", control);
  if (control < 1) ++failures;
  using fw::DeltaRule, fw::Dynamic, fw::WhenFull;
  check(DeltaRule<float, 4, 3>());
  check(DeltaRule<float>({.key_size = 17, .value_size = 100}));
  check(DeltaRule<float, Dynamic, Dynamic, fw::AttentionNormaliser<float>>({.key_size = 17}),
        "normalised");
  check(fw::Deferred(DeltaRule<float>({.key_size = 17})));
  check(fw::FastWeightMemory<float>({.key_size = 17}));
  check(fw::KeyValueCache<float>({.key_size = 17}, {sequence_length / 2, WhenFull::slide}));
  check(fw::DeltaRnn<float>({.key_size = 17}), "unchecked", false);
  return failures;
}
