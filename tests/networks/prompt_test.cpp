// Prompts: of different lengths in one batch, and the logits of chosen positions.

#include "networks/mixed_model.hpp"
#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;
using mixed_model::text;
using Columns = std::vector<Index>;

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

// Column i is that of the i-th position of a pass over all tokens.
template <class S>
void check_logits(const std::vector<Index>& lengths, const Columns& positions, double limit) {
  const Network<S> model = mixed_model::drawn<S>();
  const PassOptions options{.lengths = lengths};
  const std::vector<int> ids = text(20, 2), before = text(2 * lengths.size(), 3);
  for (const Index chunk : {1, 3, 7, 256}) {
    State whole = model.initial_state(Index(lengths.size())), prompt = whole;
    for (State* state : {&whole, &prompt}) all_logits(model, *state, before);
    const Matrix<S> all = all_logits(model, whole, ids, options);
    const Matrix<S> given = model.logits(prompt, ids, positions, chunk, options);
    REQUIRE(given.rows() == model.outputs());
    REQUIRE(given.cols() == Index(positions.size()));
    for (std::size_t i = 0; i < positions.size(); ++i)
      check_equal(given.col(Index(i)).template cast<double>(),
                  all.col(positions[i]).template cast<double>(), limit);
    check_equal(numbers_of(prompt), numbers_of(whole), limit);
    CHECK(prompt.positions == whole.positions);
  }
}

TEST_CASE("logits of chosen positions are those of all", "[networks]") {
  Columns all(20);
  for (Index i = 0; i < 20; ++i) all[std::size_t(i)] = i;
  for (const Columns& positions :
       {Columns{}, Columns{0}, Columns{19}, Columns{17, 3, 8, 3, 3, 0, 19}, all})
    for (const std::vector<Index>& lengths :
         {std::vector<Index>{20}, std::vector<Index>{7, 0, 12, 1}}) {
      check_logits<double>(lengths, positions, 1e-12);
      check_logits<float>(lengths, positions, 1e-5);
    }
}

TEST_CASE("logits refuse a position that is out of range, and keep the state", "[networks]") {
  const Net model = mixed_model::drawn<double>();
  const std::vector<int> ids = text(6, 4);
  State state = model.initial_state(2);
  const auto refused = [&](const Columns& positions, const std::string& message) {
    const auto call = [&] { model.logits(state, ids, positions); };
    CHECK_THROWS_AS(call(), std::invalid_argument);
    CHECK_THROWS_WITH(call(), ContainsSubstring(message));
    CHECK(state.positions.isZero());
  };
  refused({0, 5, 6}, "Network: positions[2] is 6, expected 0 to 5");
  refused({-1}, "Network: positions[0] is -1, expected 0 to 5");
  CHECK_THROWS_WITH(model.logits(state, ids, {0}, 0), ContainsSubstring("chunk"));
  CHECK_THROWS_WITH(model.logits(state, ids, {0}, 256, {fw::Pass::train}),
                    ContainsSubstring("a train pass"));
  CHECK_THROWS_WITH(Net().logits(state, ids, {0}), ContainsSubstring("is empty"));
}

}  // namespace
