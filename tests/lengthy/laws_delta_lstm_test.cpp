#include <fastweights/memories/recurrent/delta_lstm.hpp>

#include "lengthy/recurrent_laws.hpp"

TEST_CASE("the Delta LSTM obeys the laws", "[laws][recurrent]") {
  recurrent_laws::obeys_the_laws<fw::DeltaLstm>();
}
