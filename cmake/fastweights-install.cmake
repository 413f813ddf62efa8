include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The headers depend on no architecture, and need no compiler to be installed. The libraries of
# fastweights::compiled do, and take minutes to build.
option(FASTWEIGHTS_INSTALL_COMPILED "Build and install fastweights::compiled" OFF)
set(compiled_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fastweights-compiled)
set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/fastweights)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fastweights-config.cmake.in
                              ${PROJECT_BINARY_DIR}/fastweights-config.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS compiled_dir)
# Before 1.0 a minor version may break the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fastweights-config-version.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/fastweights-config.cmake
              ${PROJECT_BINARY_DIR}/fastweights-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/fastweights-eigen.cmake
        DESTINATION ${package_dir})

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

if(FASTWEIGHTS_INSTALL_COMPILED)
  get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(PROJECT_IS_TOP_LEVEL AND NOT multi_config AND NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)  # kernels without optimisation serve nobody
  endif()
  set(parts fastweights_compiled_core fastweights_compiled_float fastweights_compiled_networks_float
            fastweights_compiled_kernels fastweights_compiled_memories
            fastweights_compiled_memories_double)
  foreach(target fastweights_compiled ${parts})
    string(REPLACE fastweights_ "" name ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  endforeach()
  set_target_properties(${parts} PROPERTIES EXCLUDE_FROM_ALL OFF)
  install(TARGETS fastweights_compiled ${parts} EXPORT fastweights-compiled-targets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT fastweights-compiled-targets NAMESPACE fastweights:: DESTINATION ${compiled_dir})

  find_package(nlohmann_json QUIET)  # what reads config.json includes it
  if(nlohmann_json_FOUND)
    target_include_directories(fastweights_architectures SYSTEM PRIVATE
                               $<TARGET_PROPERTY:nlohmann_json::nlohmann_json,INTERFACE_INCLUDE_DIRECTORIES>)
    set_target_properties(fastweights_architectures PROPERTIES
                          EXCLUDE_FROM_ALL OFF EXPORT_NAME architectures)
    set_target_properties(fastweights_compiled_models PROPERTIES EXPORT_NAME compiled_models)
    install(TARGETS fastweights_architectures fastweights_compiled_models
            EXPORT fastweights-compiled-models-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT fastweights-compiled-models-targets NAMESPACE fastweights::
            DESTINATION ${compiled_dir})
  endif()
endif()
