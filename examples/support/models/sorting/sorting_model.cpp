#include "models/sorting/sorting_model_of.hpp"

template AnyLayer<float> short_term_mixer<float>(const SortingOptions&);
template std::unique_ptr<SortingModel> make_sorting_model<float>(const std::string&,
                                                                 const SortingOptions&);
