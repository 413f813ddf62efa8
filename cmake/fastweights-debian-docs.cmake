# CPack runs this between its installation and its archive: documents get the names and places that
# Debian's policy prescribes (sections 12.5 and 12.7).
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(share ${CPACK_TEMPORARY_DIRECTORY}/usr/share/doc)
set(docs ${share}/${CPACK_DEBIAN_PACKAGE_NAME})
file(RENAME ${share}/fastweights ${docs})

# The licence, as one paragraph of a machine-readable copyright file: indented, "." for empty lines.
file(READ ${docs}/LICENSE licence)
string(REGEX MATCH "Copyright \\(c\\) ([^\n]+)" line "${licence}")
set(holder "${CMAKE_MATCH_1}")
string(REGEX REPLACE "^.*${holder}\n+" "" licence "${licence}")
string(STRIP "${licence}" licence)
string(REPLACE "\n\n" "\n.\n" licence "${licence}")
string(REPLACE "\n" "\n " licence "${licence}")
file(WRITE ${docs}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: fastweights

Files: *
Copyright: ${holder}
License: Expat
 ${licence}
")
file(REMOVE ${docs}/LICENSE)

file(RENAME ${docs}/CHANGELOG.md ${docs}/changelog)
execute_process(COMMAND gzip -9n ${docs}/changelog COMMAND_ERROR_IS_FATAL ANY)
