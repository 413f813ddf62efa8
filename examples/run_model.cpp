// Runs a published language model from its folder: reads a prompt, writes what comes next, and says
// how fast it was and how much memory its past takes.
//
//   build/release/examples/run_model FOLDER --prompt "In the beginning"
//   build/release/examples/run_model FOLDER --prompt "Hello" --chat    # a message to a chat model
//   build/release/examples/run_model --random qwen3.5-0.8b    # random weights, for timing
//
// `mpirun -n 2 build/release/examples/run_model …` reads the prompt with two processes, whose
// pieces take turns.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fastweights/io/weights.hpp>
#include <fastweights/models/chat_template.hpp>
#include <fastweights/models/checkpoint.hpp>
#include <fastweights/models/generate.hpp>
#include <fastweights/models/load.hpp>
#include <fastweights/models/table/groups.hpp>
#include <iostream>
#include <new>
#include <set>

#include "published/finite.hpp"
#include "published/shapes.hpp"
#include "report/command_line.hpp"
#include "training/processes.hpp"
#include "training/progress.hpp"

namespace {

using fw::Index;
using fw::models::Tokenizer;
using fw::networks::WeightType;
using Network = fw::networks::Network<float>;
using State = fw::networks::State;

struct Settings {
  std::string folder, prompt = "In the beginning", weights = "float", random;
  std::string save_state, load_state, check, stop;
  long tokens = 128, random_prompt = 0;
  Index context = 0;
  fw::models::GenerateOptions generate{.temperature = 0.7, .top_p = 0.9, .seed = 1};
  bool greedy = false, smoke = false, chat = false;
};

constexpr long most_tokens = 1 << 24;

WeightType weight_type(const std::string& name) {
  return name == "bfloat16" ? WeightType::bfloat16
         : name == "int8"   ? WeightType::int8
                            : WeightType::same;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A model with the state of one text.
class Reader {
 public:
  Reader(const Network& network, State state, const Processes& processes)
      : network_(network),
        state_(std::move(state)),
        logits_(network.outputs()),
        processes_(processes) {}

  void read_prompt(const std::vector<int>& ids) {
    if (ids.empty()) return;
    constexpr long piece = 256;
    const auto count = static_cast<long>(ids.size()), parts = (count + piece - 1) / piece;
    processes_.run_round_robin(parts, [&](long part, fw::SequenceParallel& parallel) {
      const auto first = static_cast<std::size_t>(part * piece),
                 size = static_cast<std::size_t>(std::min(piece, count - part * piece));
      network_.prefill(state_, fw::Symbols(ids).subspan(first, size), logits_, trace_, piece,
                       fw::Pass::infer.over(parallel));
    });
    processes_.broadcast(fw::detail::object(state_), processes_.owner_of(parts - 1));
    processes_.broadcast(fw::detail::object(logits_), processes_.owner_of(parts - 1));
  }

  // The text that comes next; without a tokenizer only its ids.
  fw::models::Generated write(const fw::models::GenerateOptions& options,
                              const Tokenizer* tokenizer, const std::vector<int>& past) {
    if (tokenizer == nullptr)
      return fw::models::generate_ids(network_, state_, logits_, options, {}, past);
    const auto print = [](std::string_view text) { std::cout << text << std::flush; };
    return fw::models::generate(network_, state_, logits_, *tokenizer, options, print, past);
  }

  bool is_first() const { return processes_.is_first(); }
  const Eigen::VectorXf& logits() const { return logits_; }
  void set_logits(const Eigen::VectorXf& logits) { logits_ = logits; }
  State& state() { return state_; }
  const Network& network() const { return network_; }

 private:
  const Network& network_;
  State state_;
  Network::Trace trace_;
  Eigen::VectorXf logits_;
  const Processes& processes_;
};

// The caches of a long window may need more memory than there is.
State first_state(const Network& network, Index context) try {
  return network.initial_state();
} catch (const std::bad_alloc&) {
  throw std::invalid_argument("--context " + std::to_string(context) +
                              ": takes more memory than there is");
}

struct Bytes {
  double fixed = 0, per_token = 0;
  Index attention_layers = 0;
};

// The size of a state. Keys and values grow with the text.
Bytes bytes_of(State& state) {
  Bytes bytes;
  std::set<std::string> caches;  // by the layers that have them
  fw::detail::visit_all_leaves(
      [&](const fw::detail::Leaf* leaf, const fw::detail::LeafPath& path) {
        const double size = static_cast<double>(leaf->size()) * static_cast<double>(leaf->width);
        const std::string name = path.text();
        if (name.ends_with(".keys") || name.ends_with(".values")) {
          bytes.per_token += static_cast<double>(leaf->rows) * static_cast<double>(leaf->width);
          caches.insert(name.substr(0, name.find("cache")));
        } else {
          bytes.fixed += size;
        }
      },
      state);
  bytes.attention_layers = Index(caches.size());
  return bytes;
}

void print_memory(State& state, Index layers) {
  const Bytes b = bytes_of(state);
  const bool has_attention = b.attention_layers > 0;
  std::printf("\nmemory of the past in MiB, with 32-bit numbers\n  tokens     this model");
  std::printf(has_attention ? "   attention in every layer\n" : "\n");
  for (const double tokens : {1e3, 32e3, 1e6}) {
    std::printf("  %-8.0f %12.1f", tokens, (b.fixed + b.per_token * tokens) / 1048576);
    if (has_attention)
      std::printf("   %24.1f",
                  b.per_token * tokens * double(layers) / double(b.attention_layers) / 1048576);
    std::printf("\n");
  }
}

// Writes what comes next, and how fast it came.
void generate(const Settings& s, Reader& reader, const Tokenizer* tokenizer,
              const std::vector<int>& past, std::vector<int> ends = {}) {
  fw::models::GenerateOptions options = s.generate;
  options.max_tokens = s.tokens;
  options.end_tokens = std::move(ends);
  if (!s.stop.empty()) options.stop = {s.stop};
  const auto start = std::chrono::steady_clock::now();
  const std::size_t count = reader.write(options, tokenizer, past).ids.size();
  const double seconds = seconds_since(start);
  if (tokenizer != nullptr) std::cout << "\n";
  std::printf("\n%zu tokens generated, %.1f a second\n", count, double(count) / seconds);
}

void read_prompt(const Settings& s, Reader& reader, const std::vector<int>& ids) {
  const long tokens = static_cast<long>(ids.size()) + s.tokens;
  const bool forgets =
      s.context > 0 && tokens > s.context && bytes_of(reader.state()).per_token > 0;
  if (forgets && reader.is_first())
    std::fprintf(stderr, "attention looks back %ld of %ld tokens, see --context\n",
                 static_cast<long>(s.context), tokens);
  const auto start = std::chrono::steady_clock::now();
  reader.read_prompt(ids);
  std::fprintf(stderr, "%zu tokens read, %.1f a second\n", ids.size(),
               double(ids.size()) / seconds_since(start));
}

// The largest error of the logits in a file with ids.0, logits.0, ids.1, …
int check(const Settings& s, const Network& network) {
  const auto file = fw::io::SafeTensors::read(s.check);
  double worst = 0;
  int i = 0;
  for (; file.contains("ids." + std::to_string(i)); ++i) {
    const std::string end = '.' + std::to_string(i);
    const auto ids = file.values<int>("ids" + end);
    const Eigen::MatrixXf expected = file.matrix<float>("logits" + end).transpose();
    if (expected.rows() != network.outputs() || expected.cols() != Index(ids.size()))
      file.fail("logits" + end, "does not fit the model and its ids");
    if (s.context > 0 && Index(ids.size()) > s.context)
      file.fail("ids" + end, "has " + std::to_string(ids.size()) + " tokens, expected at most " +
                                 std::to_string(s.context) + ", or a larger --context");
    State state = network.initial_state();
    Network::Trace trace;
    Eigen::MatrixXf logits(network.outputs(), Index(ids.size()));
    network.forward(state, fw::Symbols(ids), logits, trace);
    const double error = (logits - expected).cwiseAbs().maxCoeff<Eigen::PropagateNaN>() /
                         expected.cwiseAbs().maxCoeff();
    if (!(error <= worst)) worst = error;
    if (std::isnan(worst)) break;
  }
  std::printf("%d prompts, largest error of the logits over the largest logit %.1e\n", i, worst);
  return (i > 0 && worst <= 1e-4) ? 0 : 1;
}

// By the first process.
void save(const std::string& path, Reader& reader) {
  if (!reader.is_first()) return;
  fw::io::SafeTensorsWriter file;
  fw::io::add_state(file, reader.state(), "state");
  file.add("logits", reader.logits());
  file.write(path);
}

void load(const std::string& path, Reader& reader) try {
  const auto file = fw::io::SafeTensors::read(path);
  check_finite(file);
  fw::io::load_state(reader.network(), reader.state(), file, "state");
  Eigen::VectorXf logits = reader.logits();
  file.copy_to("logits", logits);
  reader.set_logits(logits);
} catch (const std::exception& error) {
  throw std::invalid_argument("--load-state " + path + ": " + error.what());
}

std::vector<int> random_ids(long count, Index symbols, fw::Random& random) {
  std::vector<int> ids;
  for (long i = 0; i < count; ++i)
    ids.push_back(static_cast<int>(random.below(static_cast<std::uint64_t>(symbols))));
  return ids;
}

// Layers have numbers in the names of their weights: model.layers.3.mlp.up_proj.weight.
Index layers(const Network& network) {
  std::set<std::string> numbered;
  for (const auto& weight : network.weights)
    for (const std::string list : {".layers.", ".blocks."})
      if (const std::size_t at = weight.name.find(list); at != std::string::npos)
        numbered.insert(weight.name.substr(0, weight.name.find('.', at + list.size())));
  return Index(numbered.size());
}

// The prompt, or the text that it becomes as a user's message.
std::vector<int> prompt_of(const Settings& s, const std::filesystem::path& folder,
                           const Tokenizer& tokenizer) {
  if (!s.chat) return tokenizer.encode(s.prompt);
  const auto chat = fw::models::ChatTemplate::read(folder);
  return tokenizer.encode(
      chat.render({{{"role", "user"}, {"content", s.prompt}}}, {.add_generation_prompt = true}),
      false);
}

void go_on_from_text(const Settings& s, Reader& reader, const std::filesystem::path& folder) {
  const auto tokenizer = Tokenizer::read(folder / "tokenizer.json");
  const std::vector<int> ids = prompt_of(s, folder, tokenizer);
  if (ids.empty() && s.load_state.empty())
    throw std::invalid_argument("--prompt: has no tokens, expected a text or --load-state");
  const auto ends = fw::models::end_tokens(folder, reader.logits().size());
  if (!s.chat) std::cout << s.prompt << std::flush;
  read_prompt(s, reader, ids);
  if (!s.save_state.empty()) save(s.save_state, reader);
  generate(s, reader, &tokenizer, ids, ends);
}

int run_folder(const Settings& s, const Processes& processes) {
  const auto folder = fw::models::Checkpoint::read(s.folder);
  const auto config = fw::models::text_config(folder.config());
  const fw::models::ModelOptions options = fw::models::model_options(folder, 0, s.context);
  if (options.own_head && config.flag("tie_word_embeddings") && processes.is_first())
    std::cerr << "run_model: tie_word_embeddings is true, but lm_head.weight differs from the "
                 "embedding, and is used\n";
  Network network = fw::models::architectures<float>().build(config, options);
  Progress progress("loading", static_cast<long>(network.weights.size()));
  fw::models::load_weights(network, folder,
                           {.is_ignored = fw::models::architectures<float>().is_ignored(config),
                            .progress =
                                [&](std::size_t i, std::size_t) {
                                  if (processes.is_first()) progress.show(long(i) + 1, "");
                                },
                            .weights = weight_type(s.weights)});
  if (!s.check.empty()) return check(s, network);
  Reader reader(network, first_state(network, s.context), processes);
  if (!s.load_state.empty()) load(s.load_state, reader);
  if (s.random_prompt > 0) {
    fw::Random random(s.generate.seed);
    const std::vector<int> ids = random_ids(s.random_prompt, network.outputs(), random);
    read_prompt(s, reader, ids);
    if (!s.save_state.empty()) save(s.save_state, reader);
    generate(s, reader, nullptr, ids);
  } else {
    go_on_from_text(s, reader, folder.folder());
  }
  print_memory(reader.state(), layers(network));
  return 0;
}

int run_random(const Settings& s, const Processes& processes) {
  const fw::models::Config config = published_shape(s.random);
  Network network = fw::models::architectures<float>().build(config, {.window = s.context});
  fw::Random random(s.generate.seed);
  network.initialise(random);
  network.quantise(weight_type(s.weights));
  Reader reader(network, first_state(network, s.context), processes);
  const std::vector<int> ids =
      random_ids(s.random_prompt > 0 ? s.random_prompt : 1024, network.outputs(), random);
  read_prompt(s, reader, ids);
  generate(s, reader, nullptr, ids);
  print_memory(reader.state(), layers(network));
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  Settings s;
  CommandLine app("Runs a published language model from its folder");
  const Option folder =
      app.add_option("folder", s.folder, "with config.json, weights and tokenizer.json");
  app.add_option("--prompt", s.prompt, "what to continue from").show_default();
  app.add_positive("--tokens", s.tokens, "to write").at_most(most_tokens);
  app.add_option("--weights", s.weights, "how they are kept in memory")
      .one_of({"float", "bfloat16", "int8"})
      .show_default();
  app.add_option("--context", s.context, "tokens that attention looks back; without it, all")
      .above_zero()
      .at_most(most_tokens);
  app.add_option("--temperature", s.generate.temperature, "the lower, the surer")
      .not_negative()
      .show_default();
  app.add_option("--top-k", s.generate.top_k, "draw from this many of the likeliest; 0: from all")
      .not_negative()
      .show_default();
  app.add_option("--top-p", s.generate.top_p, "draw from the likeliest tokens with this sum")
      .between(0.0, 1.0)
      .show_default();
  app.add_option("--min-p", s.generate.min_p, "draw from tokens this likely beside the likeliest")
      .between(0.0, 1.0)
      .show_default();
  app.add_option("--repetition-penalty", s.generate.repetition_penalty,
                 "above 1: fewer tokens that the text has already")
      .above_zero()
      .show_default();
  app.add_option("--stop", s.stop, "end before this text");
  app.add_flag("--chat", s.chat, "the prompt is a user's message to a chat model");
  app.add_option("--seed", s.generate.seed, "of the draws").show_default();
  app.add_flag("--greedy", s.greedy, "always the likeliest token");
  app.add_option("--save-state", s.save_state, "write the state after the prompt to this file");
  app.add_option("--load-state", s.load_state, "continue from such a file");
  app.add_option("--check", s.check, "compare logits with those of this file, and end");
  app.add_option("--random", s.random, "random weights of this size: qwen3.5-0.8b or tiny");
  app.add_positive("--random-prompt", s.random_prompt, "read this many random tokens, not --prompt")
      .at_most(most_tokens);
  const Option smoke = app.add_flag("--smoke,--quick", s.smoke, "a tiny random model");
  app.parse(argc, argv);
  if (s.greedy) s.generate.temperature = 0;
  if (smoke.given()) {
    s.random = "tiny";
    s.random_prompt = 100;
  }
  if (s.random.empty() && !folder.given()) {
    std::cerr << "run_model: name a folder, or --random qwen3.5-0.8b\n";
    return 1;
  }
  const Processes processes;
  return processes.run("run_model", [&] {
    return s.random.empty() ? run_folder(s, processes) : run_random(s, processes);
  });
} catch (const std::exception& error) {
  std::cerr << "run_model: " << error.what() << "\n";
  return 1;
}
