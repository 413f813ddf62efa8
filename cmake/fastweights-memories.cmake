# fastweights_add_memories(target scalar ...): a static library of all memories of make_memory for
# these scalars: float, double or complex. Each group of any_memory/table/ is a source of its own for
# each scalar, because one source of all would compile for minutes.
function(fastweights_add_memories target)
  set(table ${PROJECT_SOURCE_DIR}/include/fastweights/any_memory/table)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table}/groups.hpp)
  file(READ ${table}/groups.hpp text)
  string(REGEX MATCHALL "\n  GROUP\\([a-z_]+" groups "${text}")
  list(TRANSFORM groups REPLACE "\n  GROUP\\(" "")
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target})
  set(type_of_float float)
  set(type_of_double double)
  set(type_of_complex std::complex<double>)
  add_library(${target} STATIC EXCLUDE_FROM_ALL)
  foreach(scalar IN LISTS ARGN)
    set(type ${type_of_${scalar}})
    foreach(group IN LISTS groups)
      string(TOUPPER FASTWEIGHTS_${group} list)  # of rules that are made without a name too
      file(CONFIGURE OUTPUT ${folder}/${group}_${scalar}.cpp CONTENT
           "#include <fastweights/any_memory/table/${group}.hpp>\n
namespace fw::inline FASTWEIGHTS_ABI::detail {
template void add_${group}(MemoryTable<${type}>&);
#ifdef ${list}
${list}(, ${type});
#endif
}\n")
      target_sources(${target} PRIVATE ${folder}/${group}_${scalar}.cpp)
    endforeach()
    file(CONFIGURE OUTPUT ${folder}/table_${scalar}.cpp CONTENT
         "#include <fastweights/any_memory/table/groups.hpp>\n
namespace fw::inline FASTWEIGHTS_ABI::detail {
template class MemoryTable<${type}>;
template const MemoryTable<${type}>& memory_table();
}\n")
    target_sources(${target} PRIVATE ${folder}/table_${scalar}.cpp)
  endforeach()
  target_link_libraries(${target} PUBLIC fastweights_compiled_kernels)
  # Measured: an eighth of the time of a group.
  target_precompile_headers(${target} PRIVATE <fastweights/any_memory/memory_table.hpp>)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
