# Checks that the library changes nothing in a project that contains it.
set(fastweights_source ${CMAKE_CURRENT_LIST_DIR}/../..)

# Lists the cache, except for the library's own entries, the path of Eigen and what CMake adds for any
# project(). Called before and after the library is added; a new entry is an error.
function(note_cache result)
  get_cmake_property(entries CACHE_VARIABLES)
  list(FILTER entries EXCLUDE REGEX
    "^(fastweights_|FASTWEIGHTS_|FETCHCONTENT_|CMAKE_PROJECT_|Eigen3_DIR$)")
  set(${result} ${entries} PARENT_SCOPE)
endfunction()

function(expect_no_leaks before directory)
  note_cache(after)
  list(REMOVE_ITEM after ${before})
  expect_equal("what the library adds to the cache" "${after}" "")
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  expect_equal("the library's targets" "${targets}" "fastweights;fastweights_io;fastweights_models;fastweights_mpi;fastweights_compiled_core;\
fastweights_compiled_float;fastweights_compiled_networks_float;fastweights_compiled_kernels;\
fastweights_compiled_memories;fastweights_compiled_memories_double;fastweights_compiled;\
fastweights_architectures;fastweights_compiled_models")
  get_property(tests DIRECTORY ${directory} PROPERTY TESTS)
  expect_equal("the library's tests" "${tests}" "")
  get_property(folders DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  expect_equal("the library's folders" "${folders}" "")
endfunction()
