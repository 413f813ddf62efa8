# Runs COMMAND, which must abort and print what matches EXPECTED on stderr.
execute_process(COMMAND ${COMMAND} RESULT_VARIABLE result ERROR_VARIABLE output)
if(NOT result MATCHES "[Aa]bort" OR NOT output MATCHES "${EXPECTED}")
  message(FATAL_ERROR "${COMMAND} ended with ${result} and printed:\n${output}")
endif()
