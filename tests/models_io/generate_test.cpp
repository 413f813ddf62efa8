// Text in one call against a loop over the whole sequence, which draws by a Sampler of its own.
// Stop texts, end tokens, going on from a state, and what is refused.

#include <fastweights/models/generate.hpp>
#include <fastweights/models/log_probabilities.hpp>
#include <fastweights/models/sampler.hpp>
#include <fastweights/models/tokenizer/unicode.hpp>

#include "models_io/byte_model.hpp"
#include "models_io/folder_files.hpp"

namespace {

using namespace byte_model;
using folder_files::check_error;
using fw::models::Ending;
using fw::models::generate;
using fw::models::Generated;
using fw::models::GenerateOptions;
using fw::networks::State;
using Ids = std::vector<int>;

// The logits of the last token, of the whole sequence at once.
Eigen::VectorXf last_logits(const Network& model, const Ids& ids) {
  State state = model.initial_state();
  Network::Trace trace;
  Eigen::MatrixXf y(vocabulary, Index(ids.size()));
  model.forward(state, ids, y, trace);
  return y.rightCols<1>();
}
Ids by_loop(const Network& model, Ids text, const fw::models::SamplerOptions& options, int count) {
  fw::models::Sampler draw(options);
  const std::size_t prompt = text.size();
  for (int i = 0; i < count; ++i) text.push_back(draw(last_logits(model, text), text));
  return {text.begin() + std::ptrdiff_t(prompt), text.end()};
}

TEST_CASE("generate draws what a loop over whole sequences draws", "[models_io]") {
  const Network model = network();
  const Tokenizer words = tokenizer();
  const Ids prompt = words.encode("In the cab");
  REQUIRE(prompt.front() == special);
  const Ids expected = by_loop(model, prompt,
                               {.temperature = 0.8,
                                .top_k = 40,
                                .top_p = 0.9,
                                .min_p = 0.01,
                                .repetition_penalty = 1.3,
                                .seed = 7},
                               20);
  GenerateOptions options{.max_tokens = 20,
                          .temperature = 0.8,
                          .top_k = 40,
                          .top_p = 0.9,
                          .min_p = 0.01,
                          .repetition_penalty = 1.3,
                          .seed = 7};
  for (const Index piece : {1, 3, 256}) {
    options.chunk = piece;
    std::string streamed;
    const Generated text = generate(model, words, "In the cab", options,
                                    [&](std::string_view more) { streamed += more; });
    CHECK(text.ids == expected);
    CHECK(text.text == words.decode(expected));
    CHECK(streamed == text.text);
    CHECK(text.ending == Ending::max_tokens);
  }
  options.adds_special = false;
  CHECK(generate(model, words, "<s>In the cab", options).ids == expected);
  CHECK(generate(model, words, prompt, options).ids == expected);
  options.seed = 8;
  CHECK(generate(model, words, prompt, options).ids != expected);
}

TEST_CASE("a text ends before an end token and a stop text", "[models_io]") {
  const Network model = network();
  const Tokenizer words = tokenizer();
  const GenerateOptions all{.max_tokens = 40, .seed = 3};
  const Generated whole = generate(model, words, "a", all);
  const auto until = [&](const auto& change) {
    GenerateOptions options = all;
    change(options);
    return generate(model, words, "a", options);
  };
  const Generated ended = until([&](auto& o) { o.end_tokens = {whole.ids[9], 300 - 100}; });
  const auto first = std::find_if(whole.ids.begin(), whole.ids.end(),
                                  [&](int id) { return id == whole.ids[9] || id == 200; });
  CHECK(ended.ids == Ids(whole.ids.begin(), first));
  CHECK(ended.ending == Ending::end_token);

  // A stop text of two tokens that are printable bytes.
  std::size_t i = 1;
  while (whole.ids[i] >= 128 || whole.ids[i + 1] >= 128) ++i;
  const std::string stop = words.decode(Ids{whole.ids[i], whole.ids[i + 1]});
  std::string streamed;
  GenerateOptions options = all;
  options.stop = {"never", stop};
  const Generated stopped =
      generate(model, words, "a", options, [&](std::string_view more) { streamed += more; });
  CHECK(stopped.text == whole.text.substr(0, whole.text.find(stop)));
  CHECK(streamed == stopped.text);
  CHECK(stopped.ending == Ending::stop_text);
  CHECK(stopped.ids == Ids(whole.ids.begin(), whole.ids.begin() + Index(stopped.ids.size())));
  CHECK(until([](auto& o) { o.max_tokens = 0; }).ids.empty());
}

TEST_CASE("generate and log_probabilities are names of fw and of fw::models", "[models_io]") {
  const Network model = network();
  const Tokenizer words = tokenizer();
  const GenerateOptions options{.max_tokens = 5, .seed = 3};
  const Ids ids = fw::generate(model, words, "a cab", options).ids;
  CHECK(ids == fw::models::generate(model, words, "a cab", options).ids);
  CHECK(fw::log_probabilities(model, ids) == fw::models::log_probabilities(model, ids));
  using namespace fw;
  using namespace fw::models;
  CHECK(generate(model, words, "a cab", options).ids == ids);
  CHECK(log_probabilities(model, ids).size() == 4);
}

TEST_CASE("pieces of a text are whole characters", "[models_io]") {
  const Network model = network();
  const Tokenizer words = tokenizer();
  std::vector<std::string> pieces;
  const Generated text =
      generate(model, words, "a", {.max_tokens = 200, .temperature = 2, .seed = 5},
               [&](std::string_view more) { pieces.emplace_back(more); });
  std::string joined;
  for (const std::string& piece : pieces) {
    CHECK(piece == fw::models::valid_utf8(piece));
    joined += piece;
  }
  CHECK(joined == words.decode(text.ids));
}

TEST_CASE("a text continues from a state", "[models_io]") {
  const Network model = network();
  const Tokenizer words = tokenizer();
  State state = model.initial_state();
  const Ids first = words.encode("In the"), second = words.encode(" cab", false);
  const GenerateOptions greedy{.max_tokens = 5, .temperature = 0};
  const Ids one = generate(model, state, words, first, greedy).ids;
  CHECK(state.positions[0] == Index(first.size() + one.size()));
  const Ids two = generate(model, state, words, second, greedy).ids;
  Ids text = first;
  for (const Ids& more : {one, second}) text.insert(text.end(), more.begin(), more.end());
  CHECK(two == by_loop(model, text, {.temperature = 0}, 5));

  // From logits, in two calls.
  State other = model.initial_state();
  Network::Trace trace;
  Eigen::VectorXf logits(vocabulary);
  model.prefill(other, first, logits, trace);
  Ids drawn;
  for (const Index count : {2, 3}) {
    const Ids more =
        fw::models::generate_ids(model, other, logits, {.max_tokens = count, .temperature = 0}).ids;
    drawn.insert(drawn.end(), more.begin(), more.end());
  }
  CHECK(drawn == one);
  const Generated ended =
      fw::models::generate_ids(model, other, logits, greedy, [](int) { return false; });
  CHECK(ended.ids.size() == 1);
  CHECK(ended.ending == Ending::callback);
}

TEST_CASE("generate refuses what does not fit, and keeps the state", "[models_io]") {
  const Network model = network();
  const Tokenizer words = tokenizer();
  State state = model.initial_state();
  const auto refused = [&](const GenerateOptions& options, const std::string& part) {
    check_error<std::invalid_argument>([&] { generate(model, state, words, "a", options); },
                                       {part});
    CHECK(state.positions[0] == 0);
  };
  refused({.max_tokens = -1}, "generate: max_tokens is -1, expected at least 0");
  refused({.temperature = -1}, "Sampler: temperature");
  refused({.top_k = -1}, "Sampler: top_k");
  refused({.top_p = 2}, "Sampler: top_p");
  refused({.min_p = -1}, "Sampler: min_p");
  refused({.repetition_penalty = 0}, "Sampler: repetition_penalty");
  refused({.stop = {""}}, "StopTexts: a stop text is empty");
  refused({.end_tokens = {258}}, "generate: an end token is 258, expected 0 to 257");
  refused({.end_tokens = {-1}}, "generate: an end token is -1");
  refused({.chunk = 0}, "generate: chunk is 0, expected at least 1");
  check_error<std::invalid_argument>([&] { generate(model, state, words, Ids{}); },
                                     {"generate: the prompt has no tokens"});
  check_error<std::invalid_argument>([&] { generate(model, state, words, Ids{1, 258}); }, {"258"});
  State two = model.initial_state(2);
  check_error<std::invalid_argument>([&] { generate(model, two, words, "a"); },
                                     {"is 2, expected 1"});
  Eigen::VectorXf few(7);
  check_error<std::invalid_argument>([&] { fw::models::generate_ids(model, state, few); },
                                     {"generate: logits has 7 rows"});
  CHECK(state.positions[0] == 0);
  const Network limited = network({.context = 4});
  check_error<std::length_error>([&] { generate(limited, words, "a cab"); }, {"capacity is 4"});
}

TEST_CASE("end tokens are those of a folder", "[models_io]") {
  const folder_files::Folder folder;
  const auto ends = [&] { return fw::models::end_tokens(folder.path(), 10); };
  const auto write = [&](const char* name, const std::string& text) {
    folder_files::write_text(folder / name, text);
  };
  CHECK(ends().empty());
  write("config.json", R"({"eos_token_id": 3})");
  CHECK(ends() == Ids{3});
  write("config.json", R"({"eos_token_id": 3, "text_config": {"eos_token_id": [4, 5]}})");
  CHECK(ends() == Ids{4, 5});
  write("config.json", R"({"eos_token_id": 3, "text_config": {}})");
  CHECK(ends() == Ids{3});
  write("generation_config.json", R"({"eos_token_id": null})");
  CHECK(ends() == Ids{3});
  write("generation_config.json", R"({"eos_token_id": [9, 0]})");
  CHECK(ends() == Ids{9, 0});
  for (const char* wrong : {"10", "-1", "1.5", "\"a\"", "[10]", "[-1]", "[null]"}) {
    write("generation_config.json", std::string(R"({"eos_token_id": )") + wrong + "}");
    check_error<std::invalid_argument>(ends, {"generation_config.json", "eos_token_id"});
  }
  write("generation_config.json", "[");
  check_error<std::invalid_argument>(ends, {"generation_config.json: is not JSON"});
}

}  // namespace
