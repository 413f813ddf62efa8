# The targets of fastweights::compiled. They are parts, because a program that needs one part should not
# wait for the others: what depends on no type, kernels of float, networks of float, all kernels, memories
# of float, of double.
include(${CMAKE_CURRENT_LIST_DIR}/fastweights-memories.cmake)

# fastweights_add_compiled(part link ... SOURCES source ...): a part that links others
function(fastweights_add_compiled target)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  list(TRANSFORM arg_SOURCES REPLACE "(.+)" src/\\1.cpp)
  add_library(${target} STATIC EXCLUDE_FROM_ALL ${arg_SOURCES})
  target_link_libraries(${target} PUBLIC ${arg_UNPARSED_ARGUMENTS})
  target_compile_definitions(${target} PUBLIC FASTWEIGHTS_COMPILED)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)  # plug-ins
endfunction()

# The longest sources first: what is last keeps one processor busy.
fastweights_add_compiled(fastweights_compiled_core fastweights
                         SOURCES io memories core training)
fastweights_add_compiled(fastweights_compiled_float fastweights_compiled_core
                         SOURCES backward_float step_float scan_float products_float)
# Long chunks of keys in float are multiplied in double.
fastweights_add_compiled(fastweights_compiled_networks_float fastweights_compiled_float
                         SOURCES operations_float operations_recurrent_float networks_float
                                 functions_float products_double)
fastweights_add_compiled(fastweights_compiled_kernels fastweights_compiled_networks_float
                         SOURCES operations_recurrent_double operations_double networks_double
                                 functions_double
                                 backward_double step_double scan_double deferred deferred_16_bits
                                 deferred_8_bits testing)
fastweights_add_memories(fastweights_compiled_memories float)
fastweights_add_memories(fastweights_compiled_memories_double double)

add_library(fastweights_compiled INTERFACE)
add_library(fastweights::compiled ALIAS fastweights_compiled)
target_link_libraries(fastweights_compiled INTERFACE fastweights_compiled_memories
                      fastweights_compiled_memories_double fastweights_compiled_kernels)
target_compile_definitions(fastweights_compiled INTERFACE FASTWEIGHTS_COMPILED_MEMORIES)
