#include <models/classifiers/recurrent_layers_of.hpp>

template AnyLayer<double> recurrent_layer<double>(const std::string&, fw::Index, fw::Index, double);
template void adjust_start<double>(const std::string&, AnyLayer<double>&);
template std::unique_ptr<ClassifierModel> make_classifier(const std::string&,
                                                          const SymbolEncoder<double>&, fw::Index,
                                                          double, std::uint64_t);
