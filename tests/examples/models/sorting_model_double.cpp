#include <models/sorting/sorting_model_of.hpp>

template AnyLayer<double> short_term_mixer<double>(const SortingOptions&);
template std::unique_ptr<SortingModel> make_sorting_model<double>(const std::string&,
                                                                  const SortingOptions&);
