#include "models/classifiers/classifiers_of.hpp"

template std::unique_ptr<ClassifierModel> make_classifier<float>(const std::string&, const Tokens&,
                                                                 fw::Index, double, std::uint64_t);
