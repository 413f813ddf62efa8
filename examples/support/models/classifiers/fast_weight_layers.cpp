#include "models/classifiers/recurrent_layers_of.hpp"

template AnyLayer<float> fast_weight_layer<float>(const std::string&, fw::Index, fw::Index, double);
