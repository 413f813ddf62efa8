#include <fastweights/core/version.hpp>

#include "objects.hpp"

namespace fw::python {

namespace {

// A wheel for this machine's processor stops with an error on others, not with a signal.
void check_processor() {
  bool has_all = true;
#ifdef __x86_64__
#ifdef __AVX2__
  has_all = has_all && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
#ifdef __BMI2__
  has_all = has_all && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
#endif
#ifdef __AVX512F__
  has_all = has_all && __builtin_cpu_supports("avx512f");
#endif
#if defined __AVX512BW__ && defined __AVX512DQ__ && defined __AVX512VL__
  has_all = has_all && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
#endif
#ifdef __AVX512VBMI__
  has_all = has_all && __builtin_cpu_supports("avx512vbmi");
#endif
#ifdef __AVX512VNNI__
  has_all = has_all && __builtin_cpu_supports("avx512vnni");
#endif
#ifdef __AVX512BF16__
  has_all = has_all && __builtin_cpu_supports("avx512bf16");
#endif
#endif
  if (!has_all)
    throw nb::import_error(
        "fastweights: this wheel is for a processor with instructions that this one lacks, such as "
        "AVX2 or AVX-512; build one here");
}

}  // namespace

}  // namespace fw::python

NB_MODULE(_core, m) {
  using namespace fw::python;
  check_processor();
#ifdef NDEBUG
  // What a program still holds at its end is not reported as a leak: modules and graphs of
  // autograd.
  nb::set_leak_warnings(false);
#endif
  m.attr("__version__") = fw::version;
  m.doc() = "Fast-weight memories of the C++ library fastweights.";
  bind_memory(m);
  bind_state(m);
  bind_threads(m);
  bind_memories(m);
}
