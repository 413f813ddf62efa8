// Streams text from a checkpoint of char_lm, one character at a time from a state of constant size,
// and with --check compares the streamed logits with those of the parallel form.
//
//   build/release/examples/generate build/char_lm/delta.safetensors --prompt "In the beginning"

#include <cstdio>
#include <iostream>

#include "models/characters/char_model.hpp"
#include "models/characters/generation.hpp"
#include "report/command_line.hpp"
#include "tasks/text.hpp"

namespace {

struct Settings {
  std::string checkpoint, prompt = "In the beginning";
  long length = 1000, check = 0;
  double temperature = 0.7;
  std::uint64_t seed = 1;
  bool smoke = false;
};

void write_text(const Settings& s, const std::string& alphabet, const LanguageModel<float>& model) {
  Stream stream(model);
  fw::Random random(s.seed);
  for (const int symbol : encode(s.prompt, alphabet)) stream.read(symbol);
  std::cout << s.prompt;
  for (long i = 0; i < s.length; ++i) {
    const int symbol = stream.draw(random, s.temperature);
    std::cout << alphabet[static_cast<std::size_t>(symbol)] << std::flush;
    stream.read(symbol);
  }
  std::cout << "\n";
}

// max|streamed − parallel| / max|parallel| over the logits of a text that the model generates.
double streaming_error(const Settings& s, const LanguageModel<float>& model) {
  Stream stream(model);
  fw::Random random(s.seed);
  std::vector<int> symbols{0};
  Eigen::MatrixXf streamed(model.network.outputs(), s.check);
  for (fw::Index t = 0; t < s.check; ++t) {
    streamed.col(t) = stream.read(symbols.back());
    symbols.push_back(stream.draw(random, 1.0));
  }
  symbols.pop_back();
  const Eigen::MatrixXf parallel = parallel_logits(model, symbols);
  return (streamed - parallel).cwiseAbs().maxCoeff<Eigen::PropagateNaN>() /
         parallel.cwiseAbs().maxCoeff();
}

int run(const Settings& s, const std::string& kind, const std::string& alphabet,
        const LanguageModel<float>& model) {
  if (s.check == 0) {
    write_text(s, alphabet, model);
    return 0;
  }
  const double error = streaming_error(s, model);
  std::printf("%s: streamed logits against parallel ones over %ld characters: %.1e\n", kind.c_str(),
              s.check, error);
  return error <= 1e-5 ? 0 : 1;
}

// Checks the streaming with random weights.
int smoke(Settings s) {
  int failures = 0;
  s.check = 300;
  for (const Kind& kind : model_kinds) {
    const auto model = make_char_model(kind.key, {.symbols = 63});
    fw::Random random(s.seed);
    model->initialise(random);
    failures += run(s, kind.key, "", *model);
  }
  return failures;
}

}  // namespace

int main(int argc, char** argv) try {
  Settings s;
  CommandLine app("Streams text from a checkpoint of char_lm");
  const Option file = app.add_option("checkpoint", s.checkpoint, "what char_lm wrote");
  app.add_option("--prompt", s.prompt, "what to continue from").show_default();
  app.add_positive("--length", s.length, "characters to write");
  app.add_positive("--temperature", s.temperature, "the lower, the surer");
  app.add_option("--seed", s.seed, "of the draws").show_default();
  app.add_option("--check", s.check,
                 "compare streamed and parallel logits over that many characters")
      .above_zero();
  const Option is_smoke =
      app.add_flag("--smoke,--quick", s.smoke, "random weights, streaming check");
  app.parse(argc, argv);
  if (!file.given() && !is_smoke.given()) {
    std::cerr << "generate: name a checkpoint that char_lm wrote, or --smoke\n";
    return 1;
  }
  if (s.smoke) return smoke(s);
  const auto checkpoint = fw::io::SafeTensors::read(s.checkpoint);
  const CheckpointInfo info = checkpoint_info(checkpoint);
  const auto model = make_char_model(info.kind, info.options);
  fw::io::load_parameters(model->network, checkpoint, "model");
  return run(s, info.kind, info.alphabet, *model);
} catch (const std::exception& error) {
  std::cerr << "generate: " << error.what() << "\n";
  return 1;
}
