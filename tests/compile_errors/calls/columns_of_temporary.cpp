// error: deleted function
#include <vector>

#include "example.hpp"

void test() { fw::as_columns(std::vector<float>(8), 4); }
