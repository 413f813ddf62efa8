#include "models/language_model.hpp"

template struct fw::LanguageModel<AnyBlock<float>>;
template class LanguageModel<float>;
