include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Nothing here depends on the architecture.
set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/fastweights)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fastweights-config.cmake.in
                              ${PROJECT_BINARY_DIR}/fastweights-config.cmake
                              INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
# Before 1.0 a minor version may break the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fastweights-config-version.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/fastweights-config.cmake
              ${PROJECT_BINARY_DIR}/fastweights-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/fastweights-eigen.cmake
              ${CMAKE_CURRENT_LIST_DIR}/fastweights-compiled.cmake
              ${CMAKE_CURRENT_LIST_DIR}/fastweights-memories.cmake
        DESTINATION ${package_dir})
# Of the component compiled.
install(DIRECTORY ${fastweights_source_dir}/ DESTINATION ${package_dir}/src FILES_MATCHING PATTERN *.cpp)

# For pkg-config. It finds the prefix from its own place, so an installed tree can be moved.
set(pc_dir ${CMAKE_INSTALL_DATADIR}/pkgconfig)
cmake_path(ABSOLUTE_PATH pc_dir BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE absolute_pc_dir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${absolute_pc_dir} OUTPUT_VARIABLE prefix_of_pc)
set(includedir_of_pc ${CMAKE_INSTALL_INCLUDEDIR})
if(NOT IS_ABSOLUTE "${includedir_of_pc}")
  string(PREPEND includedir_of_pc "\${prefix}/")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/fastweights.pc.in fastweights.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/fastweights.pc DESTINATION ${pc_dir})

# Not CMAKE_INSTALL_DOCDIR, which has the name of a parent project.
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/fastweights)

install(TARGETS fastweights EXPORT fastweights-targets FILE_SET HEADERS
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS fastweights_io EXPORT fastweights-io-targets FILE_SET HEADERS
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS fastweights_models EXPORT fastweights-models-targets FILE_SET HEADERS
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS fastweights_mpi EXPORT fastweights-mpi-targets FILE_SET HEADERS
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(export fastweights-targets fastweights-io-targets fastweights-models-targets
        fastweights-mpi-targets)
  install(EXPORT ${export} NAMESPACE fastweights:: DESTINATION ${package_dir})
endforeach()
