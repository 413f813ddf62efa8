# The header that script/single_header writes, in a program that does not know the folder include/.
if(NOT UNIX)
  return()  # the script is for bash
endif()
set(single_header ${CMAKE_CURRENT_BINARY_DIR}/single_header/fastweights.hpp)
add_custom_command(OUTPUT ${single_header}
  COMMAND ${PROJECT_SOURCE_DIR}/script/single_header --io ${single_header}
  DEPENDS ${PROJECT_SOURCE_DIR}/script/single_header ${PROJECT_SOURCE_DIR}/LICENSE ${headers}
          ${io_headers})
file(GLOB single_header_sources CONFIGURE_DEPENDS single_header/*.cpp)
add_executable(fastweights_single_header ${single_header_sources} ${single_header})
target_compile_features(fastweights_single_header PRIVATE cxx_std_20)
target_include_directories(fastweights_single_header PRIVATE
                           ${CMAKE_CURRENT_BINARY_DIR}/single_header)
target_link_libraries(fastweights_single_header PRIVATE fastweights_flags Eigen3::Eigen)
target_compile_options(fastweights_single_header PRIVATE $<$<CONFIG:Release>:-O1>)
add_test(NAME single_header COMMAND fastweights_single_header)
set_tests_properties(single_header PROPERTIES LABELS single_header)
