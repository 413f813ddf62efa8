#include <fastweights/memories/recurrent/delta_rnn.hpp>

#include "lengthy/recurrent_laws.hpp"

TEST_CASE("the Delta RNN obeys the laws", "[laws][recurrent]") {
  recurrent_laws::obeys_the_laws<fw::DeltaRnn>();
}
