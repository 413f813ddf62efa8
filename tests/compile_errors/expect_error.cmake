# Compiles SOURCE with COMPILER and FLAGS. If its first line is `// error: <sentence>`, compilation
# must fail with an error or note that contains the sentence. Otherwise it must compile. A second line
# `// flags: <flags>` adds flags.
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
string(REGEX REPLACE "([][+.*()^$?|\\])" "\\\\\\1" pattern "${sentence}")
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, but should not: ${sentence}")
elseif(NOT output MATCHES "(error|note):[^\n]*${pattern}")
  message(FATAL_ERROR "${SOURCE} does not compile, but the error is not: ${sentence}\n${output}")
endif()
