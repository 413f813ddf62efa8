# Compiles SOURCE with COMPILER and FLAGS. If its first line is `// error: <sentence>`, compilation
# must fail, and one of the first three errors, or a note to it, must contain the sentence. It must
# be in the first 20 lines. Otherwise the source must compile. A second line `// flags: <flags>` adds
# to FLAGS.
file(READ ${SOURCE} text)
if(text MATCHES "\n// flags: ([^\n]*)")
  string(REPLACE " " ";" more_flags "${CMAKE_MATCH_1}")
  list(APPEND FLAGS ${more_flags})
endif()
execute_process(COMMAND ${COMPILER} ${FLAGS} -fsyntax-only ${SOURCE}
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT text MATCHES "^// error: ([^\n]*)")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${SOURCE} should compile:\n${output}")
  endif()
  return()
endif()
set(sentence "${CMAKE_MATCH_1}")
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, but should not: ${sentence}")
endif()

# Some compilers print the inline namespace, others do not.
string(REGEX REPLACE "[a-z0-9_]+_align[0-9]+::" "" output "${output}")

# A list of lines. CMake takes ; and brackets as parts of lists.
function(as_list text result)
  string(REPLACE ";" "," text "${text}")
  string(REPLACE "[" "(" text "${text}")
  string(REPLACE "]" ")" text "${text}")
  string(REPLACE "\n" ";" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()
as_list("${output}" lines)
as_list("${sentence}" pattern)
string(REGEX REPLACE "([+.*()^$?|\\])" "\\\\\\1" pattern "${pattern}")

set(number 0)
set(errors 0)
foreach(line IN LISTS lines)
  math(EXPR number "${number} + 1")
  if(line MATCHES "error:")
    math(EXPR errors "${errors} + 1")
  endif()
  if(line MATCHES "(error|note):.*${pattern}" AND errors LESS_EQUAL 3 AND number LESS_EQUAL 20)
    return()
  endif()
endforeach()
message(FATAL_ERROR "${SOURCE} does not compile, but no early error is: ${sentence}\n${output}")
