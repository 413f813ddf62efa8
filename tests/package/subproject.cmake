# What a project must not notice of the library inside it.
set(fastweights_source ${CMAKE_CURRENT_LIST_DIR}/../..)

# To be called before and after the library joins: fails on a new cache entry that is neither the
# library's own, nor where it found Eigen, nor what CMake notes of any project().
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
  expect_equal("the library's targets" "${targets}" "fastweights;fastweights_io;fastweights_compiled")
  get_property(tests DIRECTORY ${directory} PROPERTY TESTS)
  expect_equal("the library's tests" "${tests}" "")
  get_property(folders DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  expect_equal("the library's folders" "${folders}" "")
endfunction()
