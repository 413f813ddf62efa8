#include "hypernetwork/worst_error_of.hpp"

template double worst_error<float>(const Problem& p, const std::string& nonlinearity);
