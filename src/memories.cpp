#include <fastweights/any_memory/implementation/table.hpp>
