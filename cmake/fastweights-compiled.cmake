# The targets of fastweights::compiled: kernels, matrix products and all memories of make_memory,
# compiled once for programs of many sources. In this project and in the installed package, where they
# are built in the user's project with the user's flags. All sources of a program must use the same
# instruction set, which the namespace of the library tells the linker.
#
# fastweights_include_dir and fastweights_source_dir are the folders of headers and of sources.
file(GLOB compiled_sources CONFIGURE_DEPENDS ${fastweights_source_dir}/*.cpp)
add_library(fastweights_compiled_kernels STATIC EXCLUDE_FROM_ALL ${compiled_sources})
target_link_libraries(fastweights_compiled_kernels PUBLIC fastweights::fastweights)
set_target_properties(fastweights_compiled_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON)  # plug-ins
target_compile_definitions(fastweights_compiled_kernels PUBLIC FASTWEIGHTS_COMPILED)
include(${CMAKE_CURRENT_LIST_DIR}/fastweights-memories.cmake)
fastweights_add_memories(fastweights_compiled_memories float double)
add_library(fastweights_compiled INTERFACE)
add_library(fastweights::compiled ALIAS fastweights_compiled)
target_link_libraries(fastweights_compiled INTERFACE fastweights_compiled_memories
                      fastweights_compiled_kernels)
