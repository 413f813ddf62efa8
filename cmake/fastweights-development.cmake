# Tests, examples and benchmarks, and their compiler flags. Only for this project itself; nothing
# here is exported.
option(FASTWEIGHTS_TESTS "Build the tests" ON)
option(FASTWEIGHTS_EXAMPLES "Build the examples" ON)
option(FASTWEIGHTS_BENCHMARKS "Build the benchmarks" ON)
option(FASTWEIGHTS_NATIVE "Compile for the processor of this machine" OFF)
option(FASTWEIGHTS_SANITIZE "Compile with the address and undefined-behaviour sanitizers" OFF)
option(FASTWEIGHTS_WERROR "Warnings are errors" OFF)
option(FASTWEIGHTS_CHECK_ONLY "Compile for errors and warnings: no programs, a quarter of the time" OFF)
option(FASTWEIGHTS_LOG_COMPILE_TIMES "Log the time and memory of every compilation, without ccache" OFF)

if(NOT (FASTWEIGHTS_TESTS OR FASTWEIGHTS_EXAMPLES OR FASTWEIGHTS_BENCHMARKS))
  return()
endif()

find_package(nlohmann_json REQUIRED)  # settings of reference vectors, results of benchmarks
find_package(OpenMP)
# Optional. Not for sanitizers, which report what MPI keeps until the end.
if(NOT FASTWEIGHTS_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  find_package(MPI QUIET COMPONENTS CXX)
endif()

set(CMAKE_CXX_EXTENSIONS OFF)

# A compiler launcher that gives errors and warnings, also of instantiated templates, and no program.
set(fastweights_check_only ${CMAKE_CURRENT_LIST_DIR}/check-only)
if(FASTWEIGHTS_CHECK_ONLY)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${fastweights_check_only})
  set(CMAKE_CXX_LINK_EXECUTABLE true)
  set(FASTWEIGHTS_TESTS OFF)  # tests need programs that run
endif()
set(fastweights_log_launcher "")
if(FASTWEIGHTS_LOG_COMPILE_TIMES)
  set(fastweights_log_launcher ${CMAKE_CURRENT_LIST_DIR}/log-compile-time
                               ${PROJECT_BINARY_DIR}/compile_times.log)
  # In front of the launcher above, or of the user's own.
  list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER ${fastweights_log_launcher})
  set(CMAKE_CXX_LINKER_LAUNCHER ${fastweights_log_launcher})
endif()
add_library(fastweights_flags INTERFACE)
if(MSVC)
  # Sources are UTF-8, and the objects of the tests have more sections than the usual format holds.
  target_compile_options(fastweights_flags INTERFACE /W4 /utf-8 /bigobj $<$<CXX_COMPILER_ID:MSVC>:/MP>
    $<$<BOOL:${FASTWEIGHTS_WERROR}>:/WX>
    $<$<BOOL:${FASTWEIGHTS_NATIVE}>:/arch:AVX2>)
else()
  target_compile_options(fastweights_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow
    $<$<BOOL:${FASTWEIGHTS_WERROR}>:-Werror>
    $<$<BOOL:${FASTWEIGHTS_NATIVE}>:-march=native>)
endif()
if(FASTWEIGHTS_NATIVE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns about its own AVX-512 intrinsics (GCC bug 105593). Builds for other machines and
  # builds with clang keep these warnings.
  target_compile_options(fastweights_flags INTERFACE
                         -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
target_link_libraries(fastweights_flags INTERFACE $<TARGET_NAME_IF_EXISTS:OpenMP::OpenMP_CXX>)
if(FASTWEIGHTS_SANITIZE)
  # Reports need only line numbers, and -g1 saves a third of the compile time. Leaving out the checks
  # of pointers saves another quarter; the address sanitizer checks pointers when they are used.
  target_compile_options(fastweights_flags INTERFACE -g1 -fno-omit-frame-pointer)
  target_compile_definitions(fastweights_flags INTERFACE _GLIBCXX_ASSERTIONS)
  foreach(add compile link)
    cmake_language(CALL target_${add}_options fastweights_flags INTERFACE
                   -fsanitize=address,undefined -fno-sanitize=null,vptr,object-size,pointer-overflow
                   -fno-sanitize-recover=all)
  endforeach()
endif()

foreach(compiled compiled_core compiled_float compiled_networks_float compiled_kernels
        compiled_memories compiled_memories_double architectures)
  string(PREPEND compiled fastweights_)
  target_link_libraries(${compiled} PRIVATE $<BUILD_INTERFACE:fastweights_flags>)
  set_target_properties(${compiled} PROPERTIES  # the targets were created before these were set
                        CXX_EXTENSIONS OFF CXX_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
endforeach()
# For programs that need kernels of float alone, and for all others. A program that makes memories by
# name links fastweights::compiled too.
add_library(fastweights_development_float INTERFACE)
target_link_libraries(fastweights_development_float INTERFACE
                      fastweights_flags fastweights_compiled_float fastweights::io
                      nlohmann_json::nlohmann_json)
add_library(fastweights_development INTERFACE)
target_link_libraries(fastweights_development INTERFACE
                      fastweights_development_float fastweights_compiled_kernels)

# What reads the tokenizer of a published model needs two more libraries. Without them, its tests and
# its examples are left out.
find_library(pcre2_library pcre2-8)
find_library(utf8proc_library utf8proc)
find_path(pcre2_include pcre2.h)
find_path(utf8proc_include utf8proc.h)
if(pcre2_library AND utf8proc_library AND pcre2_include AND utf8proc_include)
  add_library(fastweights_tokenizer INTERFACE)
  target_include_directories(fastweights_tokenizer SYSTEM INTERFACE
                             ${pcre2_include} ${utf8proc_include})
  target_link_libraries(fastweights_tokenizer INTERFACE fastweights_development
                        fastweights::models ${pcre2_library} ${utf8proc_library})
endif()

if(FASTWEIGHTS_TESTS)
  enable_testing()
  add_subdirectory(tests)
endif()
if(FASTWEIGHTS_EXAMPLES)
  add_subdirectory(examples)
endif()
if(FASTWEIGHTS_BENCHMARKS)
  add_subdirectory(benchmarks)
endif()
