#include <models/sorting/sorting_model_of.hpp>

template AnyLayer<double> continuous_mixer<double, fw::EvenSampling>(const SortingOptions&);
template AnyLayer<double> continuous_mixer<double, fw::StickySampling>(const SortingOptions&);
