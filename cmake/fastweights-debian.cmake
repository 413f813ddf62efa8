# cpack -G DEB writes libfastweights-dev_<version>_all.deb: headers, and the files of CMake and
# pkg-config.
set(CPACK_GENERATOR DEB)
# The holders in LICENSE, who have no address. Whoever publishes the package gives one:
# cpack -G DEB -D CPACK_PACKAGE_CONTACT="Name <address>"
set(CPACK_PACKAGE_CONTACT "The fastweights authors")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS  # whatever the umask
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/fastweights-debian-docs.cmake)

set(CPACK_DEBIAN_PACKAGE_NAME libfastweights-dev)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SOURCE fastweights)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libeigen3-dev (>= 3.4.0)")
# What the components io, models and mpi need beyond Eigen: nothing, these three, and MPI.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
    "nlohmann-json3-dev, libpcre2-dev, libutf8proc-dev, mpi-default-dev, cmake (>= 3.23), pkg-config")
# Its first line, the synopsis, is the description in project().
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Fast-weight memories are small matrices that a network writes to and reads
from while it runs: linear attention, the delta rule, Hebbian fast weights
and their relatives. The library runs them token by token and over sequences,
computes their gradients, and has layers, training, safetensors files and
published language models. It needs Eigen 3.4 and a C++20 compiler.")
include(CPack)
