# Programs with compiler options of their own. They use the headers alone, because
# fastweights::compiled has the usual options.

# Adds configurations/<name>.cpp, compiled with the options, and runs it.
function(add_configuration name)
  add_executable(${name} configurations/${name}.cpp)
  target_link_libraries(${name} PRIVATE fastweights::fastweights fastweights_flags)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1> ${ARGN})
  add_test(NAME configuration.${name} COMMAND ${name})
  set_tests_properties(configuration.${name} PROPERTIES LABELS configurations ENVIRONMENT ${waiting_threads})
endfunction()

set(no_exceptions -fno-exceptions -fno-rtti)
add_configuration(no_exceptions ${no_exceptions})
add_configuration(no_exceptions_files ${no_exceptions})
add_configuration(no_exceptions_training ${no_exceptions})
add_configuration(error_handler ${no_exceptions} -DFASTWEIGHTS_ERROR_HANDLER=on_error)
add_configuration(throwing_handler -DFASTWEIGHTS_ERROR_HANDLER=on_error)
add_configuration(no_malloc)

add_test(NAME configuration.no_exceptions_aborts
  COMMAND ${CMAKE_COMMAND} -D "COMMAND=$<TARGET_FILE:no_exceptions>;error"
    -D "EXPECTED=^DeltaRule: key has 3 rows, the memory expects 4"
    -P ${CMAKE_CURRENT_SOURCE_DIR}/configurations/expect_abort.cmake)
set_tests_properties(configuration.no_exceptions_aborts PROPERTIES LABELS configurations
                     ENVIRONMENT ${waiting_threads})

# A header that script/embed_weights writes, and a program that loads from it without files.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(Python3_FOUND)
  set(embed ${PROJECT_SOURCE_DIR}/script/embed_weights)
  set(file ${CMAKE_CURRENT_SOURCE_DIR}/data/pytorch_linear.safetensors)
  set(header ${CMAKE_CURRENT_BINARY_DIR}/embedded/pytorch_linear.hpp)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  add_custom_command(OUTPUT ${header} COMMAND Python3::Interpreter ${embed} ${file} ${header}
                     DEPENDS ${embed} ${file} VERBATIM)
  add_configuration(embedded_weights ${no_exceptions} -DFASTWEIGHTS_FILES=0
                    -DFASTWEIGHTS_SINGLE_THREADED)
  set_source_files_properties(configurations/embedded_weights.cpp PROPERTIES COMPILE_OPTIONS -fno-openmp)
  target_sources(embedded_weights PRIVATE ${header})
  target_include_directories(embedded_weights PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  target_link_libraries(embedded_weights PRIVATE fastweights::io)
  add_test(NAME script.embed_weights
           COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/scripts/embed_weights_test.py)
  set_tests_properties(script.embed_weights PROPERTIES LABELS configurations)
endif()
