#include "hypernetwork/worst_error_of.hpp"

template double worst_error<double>(const Problem& p, const std::string& nonlinearity);

Index block_width(const Problem& p) { return hypernetwork<double>(p, true).width(); }
