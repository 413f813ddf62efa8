// A user's program: prints the version of the headers, which must be that of the package.

#include <cstdio>
#include <fastweights/core/version.hpp>

int main() { std::puts(fw::version); }
