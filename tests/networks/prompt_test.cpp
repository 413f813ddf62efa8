// Prompts of different lengths in one batch.

#include "networks/mixed_model.hpp"
#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using mixed_model::text;

// The logits of all tokens in one pass, and the state behind it.
template <class S>
Matrix<S> all_logits(const Network<S>& model, State& state, const std::vector<int>& ids,
                     const PassOptions& options = {}) {
  typename Network<S>::Trace trace;
  Matrix<S> y(model.outputs(), Index(ids.size()));
  model.forward(state, ids, y, trace, options);
  return y;
}

TEST_CASE("prompts of different lengths in a batch give the results of each alone", "[networks]") {
  const Net model = mixed_model::drawn<double>();
  const std::vector<Index> lengths{5, 1, 40, 17};
  const std::vector<int> ids = text(63, 1), next{3, 0, 10, 7};
  for (const Index chunk : {1, 4, 16, 1000}) {
    State batch = model.initial_state(4);
    Net::Trace trace;
    Matrix<double> y = Matrix<double>::Constant(model.outputs(), 4, not_a_number), z = y;
    model.prefill(batch, fw::Symbols(ids), y, trace, chunk, {.lengths = lengths});
    model.forward(batch, next, z, trace);
    Index first = 0;
    for (Index b = 0; b < 4; first += lengths[std::size_t(b++)]) {
      const auto begin = ids.begin() + first;
      State alone = model.initial_state();
      const std::vector<int> own(begin, begin + lengths[std::size_t(b)]);
      check_equal(y.col(b), all_logits(model, alone, own).rightCols(1), 1e-12);
      check_equal(z.col(b), all_logits(model, alone, {next[std::size_t(b)]}), 1e-12);
      CHECK(batch.positions[b] == alone.positions[0]);
    }
  }
}

}  // namespace
