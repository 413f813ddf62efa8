#include <models/sorting/sorting_model_of.hpp>

template std::unique_ptr<SortingModel> make_sorting_model<double>(const std::string&,
                                                                 const SortingOptions&);
