#include "models/classifiers/classifiers.hpp"

template std::unique_ptr<ClassifierModel> make_classifier(const std::string&,
                                                          const SymbolEncoder<float>&, fw::Index,
                                                          double, std::uint64_t);
template std::unique_ptr<ClassifierModel> make_classifier(const std::string&, const VectorEncoder&,
                                                          fw::Index, double, std::uint64_t);
