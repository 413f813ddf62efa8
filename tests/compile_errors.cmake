# A user's mistake gives a readable error. The programs in compile_errors/ must not compile, and the
# compiler must print the sentence in the file's first line. control.cpp has none and must compile.
file(GLOB sources CONFIGURE_DEPENDS compile_errors/*.cpp compile_errors/*/*.cpp)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  add_test(NAME compile_error.${name}
    COMMAND ${CMAKE_COMMAND} -D COMPILER=${CMAKE_CXX_COMPILER} -D SOURCE=${source}
      "-DFLAGS=-std=c++20;-I${CMAKE_CURRENT_SOURCE_DIR}/compile_errors;-I${PROJECT_SOURCE_DIR}/include;-isystem$<JOIN:$<TARGET_PROPERTY:Eigen3::Eigen,INTERFACE_INCLUDE_DIRECTORIES>,;-isystem>"
      -P ${CMAKE_CURRENT_SOURCE_DIR}/compile_errors/expect_error.cmake)
  set_tests_properties(compile_error.${name} PROPERTIES LABELS compile_errors ENVIRONMENT LC_ALL=C)
endforeach()
