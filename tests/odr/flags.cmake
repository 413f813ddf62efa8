# Programs of sources with different instruction sets of x86-64.
set(sse2 -march=x86-64)
set(avx2 -march=x86-64 -mavx2 -mfma)

# Adds an object library of one source of this folder, compiled with the options.
function(add_flagged name source)
  add_library(${name} OBJECT odr/flags/${source})
  target_link_libraries(${name} PRIVATE fastweights::fastweights)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1> ${ARGN})
endfunction()

add_flagged(odr_caller_sse2 caller.cpp ${sse2})
add_flagged(odr_callee_sse2 callee.cpp ${sse2})
add_flagged(odr_callee_avx2 callee.cpp ${avx2})
# Both use Eigen's functions, of which the linker takes those of one source. So Eigen's alignment must
# be the same, see core/abi.hpp.
add_flagged(odr_recall_sse2 recall.cpp ${sse2} -DEIGEN_MAX_ALIGN_BYTES=32 -DRECALL=recall_sse2)
add_flagged(odr_recall_avx2 recall.cpp ${avx2} -DEIGEN_MAX_ALIGN_BYTES=32 -DRECALL=recall_avx2)

add_executable(odr_same_flags $<TARGET_OBJECTS:odr_caller_sse2> $<TARGET_OBJECTS:odr_callee_sse2>)
add_executable(odr_chosen odr/flags/chosen.cpp $<TARGET_OBJECTS:odr_recall_sse2>
               $<TARGET_OBJECTS:odr_recall_avx2>)
set_target_properties(odr_same_flags PROPERTIES LINKER_LANGUAGE CXX)
add_test(NAME odr.same_flags COMMAND odr_same_flags)
add_test(NAME odr.chosen_at_run_time COMMAND odr_chosen)
add_test(NAME odr.different_flags
  COMMAND ${CMAKE_CXX_COMPILER} $<TARGET_OBJECTS:odr_caller_sse2> $<TARGET_OBJECTS:odr_callee_avx2>
    -o odr_different_flags)
set_tests_properties(odr.different_flags PROPERTIES
  # The linker's error, in the words of ld, gold and lld.
  PASS_REGULAR_EXPRESSION "undefined (reference to|symbol:) [`']?read_with_ones")
set_tests_properties(odr.same_flags odr.chosen_at_run_time odr.different_flags PROPERTIES LABELS odr)
