# The C++ code of README.md, docs/*.md, CHANGELOG.md and CONTRIBUTING.md compiles and runs. The programs
# of README.md are programs here too. All other code is one source, for the time it takes to compile,
# but for the guides that would make it the largest of all: they have a source each.
# A ```cpp block is
# - a program if it has `int main`, here a function, which must return 0
# - a part of one program in docs/adding_a_rule.md, without a comment before it
# - else the lines of a function, or code outside of functions. What they need is in a comment before
#   the block, <!-- cpp: CODE --> or <!-- cpp outside: CODE -->. They compile, and do not run.
# A block that is not C++, or not meant to compile, is ```text.

# Takes the next ```cpp block off the variable `text`, and the comment before it. Without one, `code`
# becomes empty.
macro(next_block text code needs)
  string(FIND "${${text}}" "\n```cpp\n" begin)
  set(${code} "")
  set(${needs} "")
  if(begin GREATER -1)
    string(SUBSTRING "${${text}}" 0 ${begin} before)
    string(FIND "${before}" "\n<!-- cpp" comment REVERSE)
    if(comment GREATER -1 AND before MATCHES " -->$")
      math(EXPR comment "${comment} + 6")
      string(SUBSTRING "${before}" ${comment} -1 before)
      string(REGEX REPLACE " -->$" "" ${needs} "${before}")
    endif()
    math(EXPR begin "${begin} + 8")
    string(SUBSTRING "${${text}}" ${begin} -1 ${text})
    string(FIND "${${text}}" "\n```" end)
    string(SUBSTRING "${${text}}" 0 ${end} ${code})
  endif()
endmacro()

# Adds the code in a variable to the page's source: its includes to `includes_SOURCE`, the rest to
# `blocks_SOURCE`, in a namespace `name`.
macro(add_block name code)
  string(REGEX MATCHALL "#include [^\n]+" found "${${code}}")
  list(APPEND includes_${source} ${found})
  string(REGEX REPLACE "#include [^\n]+" "" rest "${${code}}")
  string(APPEND blocks_${source} "namespace ${name} {\n${rest}\n}\n\n")
endmacro()

# The same for a block whose `int main` is called by the program's.
macro(add_program name code)
  string(REPLACE "int main()" "int run(int, char**)" function "${${code}}")
  string(REPLACE "int main(int " "int run(int " function "${function}")
  string(REGEX REPLACE "\n}$" "\n  return 0;\n}" function "${function}")
  add_block(${name} function)
  string(APPEND declarations "namespace ${name} {\nint run(int, char**);\n}\n")
  string(APPEND calls "    {\"${name}\", ${name}::run},\n")
endmacro()

set(own_sources layers adding_a_rule)
list(TRANSFORM own_sources PREPEND documentation_ OUTPUT_VARIABLE sources)
foreach(source documentation ${sources})
  set(includes_${source} "#include <fastweights/fastweights.hpp>")
  set(blocks_${source} "")
endforeach()
set(declarations "")
set(calls "")
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md ${PROJECT_SOURCE_DIR}/C*.md)
foreach(page ${PROJECT_SOURCE_DIR}/README.md ${pages})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
  cmake_path(GET page STEM stem)
  set(source documentation)
  if(stem IN_LIST own_sources)
    set(source documentation_${stem})
  endif()
  file(READ ${page} text)
  string(REGEX MATCHALL "\n *``` *cpp" fences "${text}")
  list(LENGTH fences expected)
  set(number 0)
  set(rule "")
  set(body "")
  set(rule_ended FALSE)
  next_block(text code needs)
  while(code)
    math(EXPR number "${number} + 1")
    set(name ${stem}_${number})
    if(code MATCHES "models/(generate|chat_template).hpp" AND NOT TARGET fastweights_tokenizer)
      message(STATUS "${name} is left out: it needs PCRE2 and utf8proc")
    elseif(code MATCHES "int main" AND page STREQUAL "${PROJECT_SOURCE_DIR}/README.md")
      string(TOLOWER ${name} name)
      file(GENERATE OUTPUT pages/${name}.cpp CONTENT "${code}\n")
      add_executable(${name} ${CMAKE_CURRENT_BINARY_DIR}/pages/${name}.cpp)
      if(code MATCHES "models/model.hpp")
        target_link_libraries(${name} PRIVATE fastweights_architectures fastweights_tokenizer)
      endif()
      # Memories as the tests compile them: one build of them is enough here.
      target_link_libraries(${name} PRIVATE fastweights_development
                            $<LINK_ONLY:fastweights_test_memories>)
      add_whole_test(${name} documentation ${name} QUICK)
    elseif(code MATCHES "int main")
      add_program(${name} code)
    elseif(stem STREQUAL "adding_a_rule" AND NOT needs)
      # The parts of a rule, up to its end, and then the lines of a main().
      if(rule_ended)
        string(APPEND body "${code}\n")
      else()
        string(APPEND rule "${code}\n")
      endif()
      if(code MATCHES "\n}[;]$")
        set(rule_ended TRUE)
      endif()
    elseif(needs MATCHES "^cpp outside: (.*)")
      set(code "${CMAKE_MATCH_1}\n${code}")
      add_block(${name} code)
    else()
      string(REGEX REPLACE "^cpp: " "" needs "${needs}")
      set(code "[[maybe_unused]] inline auto lines() {\n${needs}\n${code}\n}")
      add_block(${name} code)
    endif()
    next_block(text code needs)
  endwhile()
  if(NOT number EQUAL expected)
    message(FATAL_ERROR "${page} has ${expected} blocks of C++, of which ${number} are found: each "
                        "begins with ```cpp at the beginning of a line, and is not empty.")
  endif()
  if(rule)
    set(code "#include <fastweights/testing/gradient_check.hpp>
#include <iostream>
${rule}
static_assert(fw::assert_memory<GatedRule<float>>());

int main() {
${body}
  return error.worst <= 1e-10 && (y - target).norm() < 0.5f * target.norm() ? 0 : 1;
}")
    add_program(${stem} code)
  endif()
endforeach()

set(files documentation.cpp)
foreach(source documentation ${sources})
  list(REMOVE_DUPLICATES includes_${source})
  list(JOIN includes_${source} "\n" includes_${source})
endforeach()
foreach(source ${sources})
  file(GENERATE OUTPUT ${source}.cpp CONTENT "${includes_${source}}\n\n${blocks_${source}}")
  list(APPEND files ${source}.cpp)
endforeach()
file(GENERATE OUTPUT documentation.cpp CONTENT "${includes_documentation}
#include <cstdio>

${blocks_documentation}
${declarations}
int main(int count, char** arguments) {
  const struct {
    const char* name;
    int (*run)(int, char**);
  } programs[] = {
${calls}  };
  int failed = 0;
  for (const auto& program : programs) {
    const bool good = program.run(count, arguments) == 0;
    std::printf(\"%s: %s\\n\", program.name, good ? \"passed\" : \"FAILED\");
    failed += !good;
  }
  return failed;
}
")
list(TRANSFORM files PREPEND ${CMAKE_CURRENT_BINARY_DIR}/)
add_executable(fastweights_documentation ${files})
target_link_libraries(fastweights_documentation PRIVATE fastweights_development
                      $<LINK_ONLY:fastweights_test_memories>)
if(TARGET fastweights_tokenizer)  # pages that write text
  target_link_libraries(fastweights_documentation PRIVATE fastweights_architectures
                        fastweights_tokenizer)
endif()
target_compile_options(fastweights_documentation PRIVATE $<$<CONFIG:Release>:-O0>)
add_test(NAME documentation COMMAND fastweights_documentation)
set_tests_properties(documentation PROPERTIES LABELS documentation)

# The comments of memories and layers say what a user needs, and equations become formulas: script/docs.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME documented_headers
           COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/docs/site/check_headers.py)
  add_test(NAME documented_table
           COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/docs/site/memory_table.py)
  add_test(NAME site_equations
           COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/docs/site/equations_test.py)
  set_tests_properties(documented_headers documented_table site_equations PROPERTIES LABELS documentation)
endif()
