#include "models/language_model.hpp"

template class LanguageModel<float>;
