#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/memories/recurrent/delta_lstm.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>

#include "layers/memory/recurrent_checks.hpp"

using layer_checks::parameter_names;
using recurrent_checks::check_around;

namespace {

using SumElu = fw::SumNormalised<fw::EluPlusOne>;

}  // namespace

TEST_CASE("FastWeightLayer around the Delta RNN", "[layers][recurrent]") {
  check_around<fw::DeltaRnn, SumElu>(3, 4);
  check_around<fw::DeltaRnn, fw::IdentityMap>(1, 2);
  const fw::FastWeightLayer<fw::DeltaRnn<double>, SumElu> layer(
      {.d_model = 6, .heads = 2}, fw::DeltaRnn<double>({.key_size = 4, .value_size = 3}));
  CHECK(parameter_names(layer) ==
        "write.key.weight\nwrite.value.weight\nwrite.beta.weight\nwrite.query.weight\n"
        "write.recurrent_key.weight\nwrite.recurrent_value.weight\nwrite.recurrent_beta.weight\n"
        "output.weight\n");
}

TEST_CASE("FastWeightLayer around the Delta LSTM", "[layers][recurrent]") {
  check_around<fw::DeltaLstm, SumElu>(3, 4);
  const fw::FastWeightLayer<fw::DeltaLstm<double>, SumElu> layer(
      {.d_model = 6, .heads = 2}, fw::DeltaLstm<double>({.key_size = 4, .value_size = 3}));
  CHECK(layer.write.key.weight.rows() == 2 * 4 * 3);
  CHECK(layer.write.beta.weight.rows() == 2 * 3);
}
