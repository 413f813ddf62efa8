# Reads the version from core/version.hpp, the only place that has it, into fastweights_version.
set(header ${CMAKE_CURRENT_LIST_DIR}/../include/fastweights/core/version.hpp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
file(STRINGS ${header} numbers REGEX "^#define FASTWEIGHTS_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
list(TRANSFORM numbers REPLACE "^.* " "")
list(JOIN numbers . fastweights_version)
if(NOT fastweights_version MATCHES "^[0-9]+\\.[0-9]+\\.[0-9]+$")
  message(FATAL_ERROR "${header} has the version '${fastweights_version}', expected three numbers.")
endif()
