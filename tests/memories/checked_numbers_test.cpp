#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/recurrent/delta_lstm.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>
#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>
#include <fastweights/memories/recurrent/self_referential_matrix.hpp>
#include <fastweights/memories/rules/fast_weight_memory.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>

#include "memories/checked_cases.hpp"

/// \file
/// Checked steps and scans refuse NaN, infinity and too large a number in every input of every
/// memory.

using namespace checked_cases;

TEST_CASE("checked scan and step: numbers that are not finite or too large", "[checked]") {
  refuses_numbers(Case(fw::LinearAttention<float>({5, 3})));
  refuses_numbers(Case(fw::DeltaRule<float, 5, 3>()));
  refuses_numbers(Case(fw::DeltaRule<double>({1, 3})));
  refuses_numbers(Case(RowDelta<float>({5, 3})));
  refuses_numbers(Case(NormalisedDelta<float>({5, 3})));
  refuses_numbers(Case(fw::GatedDeltaRule<float>({5, 3})));
  refuses_numbers(Case(Kimi<double>({5, 3})));
  refuses_numbers(Case(fw::GatedLinearAttention<float>({5, 3})));
  refuses_numbers(Case(fw::HebbianMemory<float>({5, 3})));
  refuses_numbers(Case(fw::FastWeightMemory<float>({5, 3})));
  refuses_numbers(Case(fw::Programmer1991<float>({5, 3})));
  refuses_numbers(Case(fw::KeyValueCache<float>({5, 3}, {.capacity = 4})));
  refuses_numbers(Case(fw::DeltaRnn<float>({5, 3})));
  refuses_numbers(Case(fw::DeltaLstm<float>({5, 3})));
  refuses_numbers(Case(fw::RecurrentDeltaNet<float>({5, 3})));
  refuses_numbers(Case(fw::SelfReferentialMatrix<float>({5, 3})));
  refuses_numbers(Case(fw::Deferred(fw::DeltaRule<float>({5, 3}))));
}
