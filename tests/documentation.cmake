# The C++ code of README.md and docs/adding_a_rule.md compiles and runs.

# Takes the next ```cpp block off the variable `text`. Without one, `code` becomes empty.
macro(next_block text code)
  string(FIND "${${text}}" "\n```cpp\n" begin)
  set(${code} "")
  if(begin GREATER -1)
    math(EXPR begin "${begin} + 8")
    string(SUBSTRING "${${text}}" ${begin} -1 ${text})
    string(FIND "${${text}}" "\n```" end)
    string(SUBSTRING "${${text}}" 0 ${end} ${code})
  endif()
endmacro()

function(read_page file result)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
  file(READ ${PROJECT_SOURCE_DIR}/${file} text)
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

function(add_page_program name code)
  file(GENERATE OUTPUT pages/${name}.cpp CONTENT "${code}\n")
  add_executable(${name} ${CMAKE_CURRENT_BINARY_DIR}/pages/${name}.cpp)
  target_link_libraries(${name} PRIVATE fastweights_development)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS documentation)
endfunction()

# Every block of README.md with a main() is a program.
read_page(README.md text)
set(number 0)
next_block(text code)
while(code)
  if(code MATCHES "int main")
    math(EXPR number "${number} + 1")
    add_page_program(readme_${number} "${code}")
  endif()
  next_block(text code)
endwhile()

# The blocks of docs/adding_a_rule.md are one program: the parts of a rule, up to its end, and then
# the lines of a main().
read_page(docs/adding_a_rule.md text)
set(rule "")
set(body "")
set(rule_ended FALSE)
next_block(text code)
while(code)
  if(rule_ended)
    string(APPEND body "${code}\n")
  else()
    string(APPEND rule "${code}\n")
  endif()
  if(code MATCHES "\n}[;]$")
    set(rule_ended TRUE)
  endif()
  next_block(text code)
endwhile()
add_page_program(adding_a_rule "#include <fastweights/fastweights.hpp>
#include <fastweights/testing/gradient_check.hpp>
#include <iostream>

${rule}
static_assert(fw::assert_memory<GatedRule<float>>());

int main() {
${body}
  return error.worst <= 1e-10 && (y - target).norm() < 0.5f * target.norm() ? 0 : 1;
}")
