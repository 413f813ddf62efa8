# fastweights::compiled_models: every architecture of models/table/ compiled once in float and double,
# for fw::models::load. Each group is a source of its own for each scalar.
set(table ${PROJECT_SOURCE_DIR}/include/fastweights/models/table)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table}/groups.hpp)
file(READ ${table}/groups.hpp text)
string(REGEX MATCHALL "\n  GROUP\\([a-z_0-9]+" groups "${text}")
list(TRANSFORM groups REPLACE "\n  GROUP\\(" "")
set(folder ${CMAKE_CURRENT_BINARY_DIR}/fastweights_compiled_models)
add_library(fastweights_compiled_models STATIC EXCLUDE_FROM_ALL)
add_library(fastweights::compiled_models ALIAS fastweights_compiled_models)
foreach(scalar float double)
  foreach(group IN LISTS groups)
    file(CONFIGURE OUTPUT ${folder}/${group}_${scalar}.cpp CONTENT
         "#include <fastweights/models/table/${group}.hpp>\n
namespace fw::inline FASTWEIGHTS_ABI::models {
template void add_${group}(Architectures<${scalar}>&);
}\n")
    target_sources(fastweights_compiled_models PRIVATE ${folder}/${group}_${scalar}.cpp)
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/load_${scalar}.cpp CONTENT
       "#include <fastweights/models/implementation/model.hpp>\n
namespace fw::inline FASTWEIGHTS_ABI::models {
template const Architectures<${scalar}>& architectures();
template networks::Network<${scalar}> load(const std::filesystem::path&, const LoadModelOptions&);
}\n")
  target_sources(fastweights_compiled_models PRIVATE ${folder}/load_${scalar}.cpp)
endforeach()
target_link_libraries(fastweights_compiled_models PUBLIC fastweights_compiled fastweights_models)
target_compile_definitions(fastweights_compiled_models PUBLIC FASTWEIGHTS_COMPILED_MODELS)
target_precompile_headers(fastweights_compiled_models PRIVATE <fastweights/models/architectures.hpp>)
set_target_properties(fastweights_compiled_models PROPERTIES POSITION_INDEPENDENT_CODE ON)
