# Packages the repository that this port lies in; it downloads nothing.
cmake_path(ABSOLUTE_PATH CURRENT_PORT_DIR OUTPUT_VARIABLE source)
cmake_path(APPEND source ../../../..)
cmake_path(NORMAL_PATH source)

vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES compiled FASTWEIGHTS_INSTALL_COMPILED)
if(NOT "compiled" IN_LIST FEATURES)
  set(VCPKG_BUILD_TYPE release)  # there are only headers
endif()
vcpkg_cmake_configure(
  SOURCE_PATH "${source}"
  OPTIONS -DFASTWEIGHTS_TESTS=OFF -DFASTWEIGHTS_EXAMPLES=OFF -DFASTWEIGHTS_BENCHMARKS=OFF ${features})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/fastweights)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc" "${CURRENT_PACKAGES_DIR}/debug/include"
     "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
