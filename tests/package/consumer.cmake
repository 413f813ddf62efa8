# The same two programs for every way to get the library, with warnings as errors.
add_executable(consumer ${CMAKE_CURRENT_LIST_DIR}/consumer.cpp)
target_link_libraries(consumer PRIVATE fastweights::fastweights)
add_executable(consumer_io ${CMAKE_CURRENT_LIST_DIR}/consumer_io.cpp)
target_link_libraries(consumer_io PRIVATE fastweights::io)

enable_testing()
foreach(program consumer consumer_io)
  target_compile_options(${program} PRIVATE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
  add_test(NAME ${program} COMMAND ${program})
endforeach()
set_tests_properties(consumer PROPERTIES PASS_REGULAR_EXPRESSION "^5\n$")

function(expect_equal what actual expected)
  if(NOT actual STREQUAL expected)
    message(SEND_ERROR "${what} is '${actual}', expected '${expected}'")
  endif()
endfunction()

# The requirements of the targets on a project that links them.
foreach(target fastweights::fastweights fastweights::io)
  foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS LINK_OPTIONS)
    get_target_property(value ${target} INTERFACE_${property})
    expect_equal("${property} of ${target}" "${value}" "value-NOTFOUND")
  endforeach()
endforeach()
get_target_property(features fastweights::fastweights INTERFACE_COMPILE_FEATURES)
expect_equal("the required standard" "${features}" cxx_std_20)
get_directory_property(options COMPILE_OPTIONS)
expect_equal("the directory's options" "${options}" "")
