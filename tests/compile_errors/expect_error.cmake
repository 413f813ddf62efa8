# Compiles SOURCE with COMPILER and FLAGS. Where its first line is `// error: <sentence>` it must
# fail, with an error or a note that contains the sentence; else it must compile.
execute_process(COMMAND ${COMPILER} ${FLAGS} -fsyntax-only ${SOURCE}
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
file(READ ${SOURCE} text)
if(NOT text MATCHES "^// error: ([^\n]*)")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${SOURCE} should compile:\n${output}")
  endif()
  return()
endif()
set(sentence "${CMAKE_MATCH_1}")
string(REGEX REPLACE "([][+.*()^$?|\\])" "\\\\\\1" pattern "${sentence}")
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, but should not: ${sentence}")
elseif(NOT output MATCHES "(error|note):[^\n]*${pattern}")
  message(FATAL_ERROR "${SOURCE} does not compile, but does not say so: ${sentence}\n${output}")
endif()
