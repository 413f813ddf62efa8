#include "models/classifiers/recurrent_layers_of.hpp"

template AnyLayer<float> recurrent_layer<float>(const std::string&, fw::Index, fw::Index, double);
template void adjust_start<float>(const std::string&, AnyLayer<float>&);
