# fastweights::compiled_models: every architecture of models/table/ compiled once in float and double,
# for fw::models::load. Each group is a source of its own for each scalar.
set(table ${PROJECT_SOURCE_DIR}/include/fastweights/models/table)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table}/groups.hpp)
file(READ ${table}/groups.hpp text)
string(REGEX MATCHALL "\n  GROUP\\([a-z_0-9]+" groups "${text}")
list(TRANSFORM groups REPLACE "\n  GROUP\\(" "")
set(folder ${CMAKE_CURRENT_BINARY_DIR}/fastweights_architectures)
add_library(fastweights_architectures STATIC EXCLUDE_FROM_ALL)
foreach(scalar float double)
  foreach(group IN LISTS groups)
    file(CONFIGURE OUTPUT ${folder}/${group}_${scalar}.cpp CONTENT
         "#include <fastweights/models/table/${group}.hpp>\n
namespace fw::inline FASTWEIGHTS_ABI::models {
template void add_${group}(Architectures<${scalar}>&);
}\n")
    target_sources(fastweights_architectures PRIVATE ${folder}/${group}_${scalar}.cpp)
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/load_${scalar}.cpp CONTENT
       "#include <fastweights/models/implementation/log_probabilities.hpp>
#include <fastweights/models/implementation/model.hpp>\n
namespace fw::inline FASTWEIGHTS_ABI::models {
template const Architectures<${scalar}>& architectures();
template networks::Network<${scalar}> load(const std::filesystem::path&, const LoadModelOptions&);
template std::vector<double> log_probabilities(const networks::Network<${scalar}>&, Symbols);
}\n")
  target_sources(fastweights_architectures PRIVATE ${folder}/load_${scalar}.cpp)
endforeach()

# Text: tokenizer, generate and chat templates. Without PCRE2 and utf8proc, programs compile them.
# The installed package looks for the two libraries itself.
find_path(fastweights_pcre2_include pcre2.h)
find_path(fastweights_utf8proc_include utf8proc.h)
find_library(fastweights_pcre2_library pcre2-8)
find_library(fastweights_utf8proc_library utf8proc)
mark_as_advanced(fastweights_pcre2_include fastweights_utf8proc_include fastweights_pcre2_library
                 fastweights_utf8proc_library)
if(fastweights_pcre2_include AND fastweights_utf8proc_include AND fastweights_pcre2_library AND
   fastweights_utf8proc_library)
  target_sources(fastweights_architectures PRIVATE ${PROJECT_SOURCE_DIR}/src/text.cpp
                 ${PROJECT_SOURCE_DIR}/src/chat_template.cpp)
  target_include_directories(fastweights_architectures SYSTEM PRIVATE
                             ${fastweights_pcre2_include} ${fastweights_utf8proc_include})
  target_compile_definitions(fastweights_architectures PUBLIC FASTWEIGHTS_COMPILED_TEXT)
  target_link_libraries(fastweights_architectures INTERFACE
                        $<BUILD_INTERFACE:${fastweights_pcre2_library}>
                        $<BUILD_INTERFACE:${fastweights_utf8proc_library}>)
endif()
# Whose memories they use is for the program to say: the tests have some of their own.
target_link_libraries(fastweights_architectures PUBLIC fastweights_compiled_kernels fastweights_models)
target_compile_definitions(fastweights_architectures PUBLIC FASTWEIGHTS_COMPILED_MODELS)
target_precompile_headers(fastweights_architectures PRIVATE <fastweights/models/architectures.hpp>)
set_target_properties(fastweights_architectures PROPERTIES POSITION_INDEPENDENT_CODE ON)

add_library(fastweights_compiled_models INTERFACE)
add_library(fastweights::compiled_models ALIAS fastweights_compiled_models)
target_link_libraries(fastweights_compiled_models INTERFACE fastweights_architectures fastweights_compiled)
