#include <fastweights/models/implementation/end_tokens.hpp>
#include <fastweights/models/implementation/generate.hpp>
#include <fastweights/models/implementation/tokenizer.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {

#define FASTWEIGHTS_GENERATE(S)                                                                    \
  template Generated generate_ids(const networks::Network<S>&, networks::State&,                   \
                                  Eigen::Matrix<S, Dynamic, 1>&, const GenerateOptions&,           \
                                  const std::function<bool(int)>&, std::span<const int>);          \
  template Generated generate(const networks::Network<S>&, networks::State&,                       \
                              Eigen::Matrix<S, Dynamic, 1>&, const Tokenizer&,                     \
                              const GenerateOptions&, const TextCallback&, std::span<const int>);  \
  template Generated generate(const networks::Network<S>&, networks::State&, const Tokenizer&,     \
                              std::span<const int>, const GenerateOptions&, const TextCallback&);  \
  template Generated generate(const networks::Network<S>&, networks::State&, const Tokenizer&,     \
                              std::string_view, const GenerateOptions&, const TextCallback&);      \
  template Generated generate(const networks::Network<S>&, const Tokenizer&, std::span<const int>, \
                              const GenerateOptions&, const TextCallback&);                        \
  template Generated generate(const networks::Network<S>&, const Tokenizer&, std::string_view,     \
                              const GenerateOptions&, const TextCallback&);

FASTWEIGHTS_GENERATE(float)
FASTWEIGHTS_GENERATE(double)

}  // namespace fw::models
