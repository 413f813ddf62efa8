#include "models/sorting/sorting_model_of.hpp"

template AnyLayer<float> continuous_mixer<float, fw::EvenSampling>(const SortingOptions&);
template AnyLayer<float> continuous_mixer<float, fw::StickySampling>(const SortingOptions&);
