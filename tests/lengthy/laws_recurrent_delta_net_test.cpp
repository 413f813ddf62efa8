#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>

#include "lengthy/recurrent_laws.hpp"

TEST_CASE("the recurrent delta net obeys the laws", "[laws][recurrent]") {
  recurrent_laws::obeys_the_laws<fw::RecurrentDeltaNet>();
}
