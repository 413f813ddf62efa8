#include <fastweights/memories/recurrent/self_referential_matrix.hpp>

#include "lengthy/recurrent_laws.hpp"

TEST_CASE("the self-referential matrix obeys the laws", "[laws][recurrent]") {
  recurrent_laws::obeys_the_laws<fw::SelfReferentialMatrix>();
}
