# Packages the repository that this port lies in; it downloads nothing.
cmake_path(ABSOLUTE_PATH CURRENT_PORT_DIR OUTPUT_VARIABLE source)
cmake_path(APPEND source ../../../..)
cmake_path(NORMAL_PATH source)

set(VCPKG_BUILD_TYPE release)  # there are only headers
vcpkg_cmake_configure(
  SOURCE_PATH "${source}"
  OPTIONS -DFASTWEIGHTS_TESTS=OFF -DFASTWEIGHTS_EXAMPLES=OFF -DFASTWEIGHTS_BENCHMARKS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/fastweights)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
