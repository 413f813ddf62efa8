// The tokens that attention keeps: all, up to a limit, or those of a window.

#include "models_io/built.hpp"
#include "models_io/folder_files.hpp"
#include "models_io/seven_symbols.hpp"

namespace {

using namespace folder_files;
using fw::Index;
using fw::models::ModelOptions;
using seven_symbols::drawn;
using seven_symbols::Network;
using Json = nlohmann::json;
using Logits = Eigen::MatrixXf;

const Json sizes = one_attention(7);

Network qwen(const ModelOptions& options) { return drawn(built(sizes, options)); }
Network minimax(const ModelOptions& options, const Json& more = Json::object()) {
  Json config = sizes;
  config.update({{"model_type", "minimax"},
                 {"hidden_act", "silu"},
                 {"num_local_experts", 2},
                 {"num_experts_per_tok", 2}});
  config.update(more);
  return drawn(built(config, options));
}

std::vector<int> ids(Index count) {
  std::vector<int> all;
  for (Index i = 0; i < count; ++i) all.push_back(int(i * i % 7));
  return all;
}
// Tokens first … first + count − 1 of a hundred.
Logits read(const Network& network, fw::networks::State& state, Index first, Index count) {
  Network::Trace trace;
  Logits y(7, count);
  network.forward(state, fw::Symbols(ids(100)).subspan(std::size_t(first), std::size_t(count)), y,
                  trace);
  return y;
}
Logits read(const Network& network, Index count) {
  auto state = network.initial_state();
  return read(network, state, 0, count);
}
Logits in_pieces(const Network& network, Index count, Index piece) {
  auto state = network.initial_state();
  Logits y(7, count);
  for (Index t = 0; t < count; t += piece) y.middleCols(t, piece) = read(network, state, t, piece);
  return y;
}
bool are_close(const Logits& a, const Logits& b) { return (a - b).norm() <= 1e-5f * b.norm(); }

TEST_CASE("a model forgets nothing by default", "[models_io]") {
  for (const auto& build : {+[](const ModelOptions& o) { return qwen(o); },
                            +[](const ModelOptions& o) { return minimax(o); }}) {
    const Network grows = build({}), roomy = build({.context = 100});
    const Logits expected = read(roomy, 100);
    CHECK(are_close(read(grows, 100), expected));
    for (const Index piece : {1, 4, 50}) CHECK(are_close(in_pieces(grows, 100, piece), expected));
    CHECK(!are_close(read(build({.window = 64}), 100), expected));
  }
}

TEST_CASE("a limit of tokens is kept, and the state with it", "[models_io]") {
  const Network limited = qwen({.context = 5});
  auto state = limited.initial_state(), before = state;
  read(limited, state, 0, 3);
  before = state;
  check_error<std::length_error>([&] { read(limited, state, 3, 3); },
                                 {"3 tokens held, 3 more given, the capacity is 5"});
  CHECK(state.positions[0] == 3);
  Network::Trace trace;
  Logits last(7, 1);
  check_error<std::length_error>(  // before the first piece
      [&] { limited.prefill(state, fw::Symbols(ids(4)), last, trace, 1); }, {"4 more given"});
  CHECK(state.positions[0] == 3);
  CHECK(read(limited, state, 3, 2) == read(limited, before, 3, 2));
  check_error<std::length_error>([&] { read(limited, state, 5, 1); }, {"5 tokens held"});
  for (const ModelOptions& options : {ModelOptions{.context = -1}, ModelOptions{.window = -1}})
    check_error<std::invalid_argument>([&] { qwen(options); }, {"ModelOptions", "at least 0"});
}

TEST_CASE("a window is what the caller or the config asks for", "[models_io]") {
  const Json sliding{{"sliding_window", 3}};
  const Logits expected = read(minimax({.window = 3}), 20);
  CHECK(!are_close(expected, read(minimax({}), 20)));
  CHECK(read(minimax({}, sliding), 20) == expected);
  CHECK(read(minimax({.window = 9}, sliding), 20) == expected);
  CHECK(read(minimax({.context = 9}, sliding), 20) == expected);
  CHECK(are_close(in_pieces(minimax({}, sliding), 20, 1), expected));
  CHECK(read(minimax({.window = 2}, sliding), 20) == read(minimax({.window = 2}), 20));
  // All that is read lies in the window.
  CHECK(are_close(read(minimax({.context = 2}, sliding), 2), read(minimax({}), 2)));
  check_error<std::length_error>([&] { read(minimax({.context = 2}, sliding), 3); }, {"is 2"});
}

}  // namespace
