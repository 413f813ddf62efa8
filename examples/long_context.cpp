// Streams a real text through the ∞-former's long-term memory and measures the cost of an unbounded
// past: bytes and time per token are constant, and the signal of old tokens fades. A token is a
// character with a fixed random vector. The memory has its published sizes, but 64 features instead
// of a large model's (--d 768 --heads 12).
//
// The error of the memory is that of its signal alone, without attention: ‖x̃ − x‖/‖x‖, with x̃ the
// signal at the places of the tokens x of a chunk. The vectors have mean 0 over the text, so that
// remembering only the mean has an error of 1. The basis functions are wider than a token, hence
// there are also errors of averages over windows of tokens.
//
//   script/parts/text build/text/kjv.txt         # the King James Bible
//   build/release/examples/long_context --text build/text/kjv.txt [--quick]

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fastweights/layers/attention/long_term_layer.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "report/command_line.hpp"
#include "report/experiments/signal_place.hpp"
#include "report/files.hpp"
#include "report/plot.hpp"
#include "tasks/text.hpp"
#include "training/progress.hpp"

namespace {

using fw::Index;
using Matrix = Eigen::MatrixXf;
using Components = fw::LearnedComponents<float>;
using Memory = fw::ContinuousMemory<float, fw::MixtureDensity<float, Components>>;
using Layer = fw::LongTermLayer<Memory>;

struct Settings {
  std::string text = "build/text/kjv.txt", output = "build/long_context";
  Index d = 64, heads = 2, functions = 512, samples = 512, chunk = 512, oldest = 64;
  std::vector<double> widths{0.005, 0.01};
  std::vector<Index> windows{1, 16, 64, 512};
  double tau = 0.75, ridge = 1;
  Index repeat = 3, tokens = 0;
  std::uint64_t seed = 1;
  bool quick = false, smoke = false;
};

Layer make_layer(const Settings& s) {
  const Memory::Options o{.d = s.d,
                          .heads = s.heads,
                          .chunk = s.chunk,
                          .samples = s.samples,
                          .contraction = {s.tau},
                          .regression = {.ridge = s.ridge}};
  const Memory memory(o, fw::GaussianBasis<float>(s.functions, s.widths),
                      {Components(s.functions)});
  Layer layer({.heads = s.heads}, memory, {});
  fw::Random random(s.seed);
  fw::initialise(layer, random);
  return layer;
}

/// The text as vectors, chunk by chunk; it starts again after its end.
class Signal {
 public:
  Signal(const Settings& s, const Text& text)
      : text_(text), vectors_(s.d, text.size()), chunk_(s.chunk) {
    fw::Random random(s.seed + 1);
    random.fill(vectors_);
    Eigen::VectorXd often = Eigen::VectorXd::Zero(text.size());
    for (const int symbol : text.symbols) often[symbol] += 1;
    const Eigen::VectorXd mean =
        vectors_.cast<double>() * often / static_cast<double>(text.symbols.size());
    vectors_.colwise() -= mean.cast<float>();
  }

  Matrix chunk(Index k) const {
    Matrix x(vectors_.rows(), chunk_);
    for (Index l = 0; l < chunk_; ++l) {
      const auto at = static_cast<std::size_t>(k * chunk_ + l) % text_.symbols.size();
      x.col(l) = vectors_.col(text_.symbols[at]);
    }
    return x;
  }

 private:
  const Text& text_;
  Matrix vectors_;
  Index chunk_;
};

/// One stream. Each step reads with a chunk as queries, then writes the chunk.
struct Stream {
  Layer::State state;
  Layer::Trace trace;
  Index chunks = 0;

  /// Processor time of f in seconds, which depends less on other programs than wall time.
  template <class F> static double seconds(const F& f) {
    const std::clock_t start = std::clock();
    f();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }

  struct Cost {
    double write, read;  // seconds
  };
  Cost step(const Layer& layer, const Signal& signal) {
    const Matrix x = signal.chunk(chunks);
    Matrix y(layer.outputs(), x.cols());
    const double read = seconds([&] { layer.read(state, x, y, trace); });
    const double write = seconds([&] { layer.write(state, x, trace); });
    ++chunks;
    return {write, read};
  }

  std::size_t bytes() const {
    std::size_t sum = 0;
    fw::for_each_leaf(
        [&sum](const auto& leaf) {
          if constexpr (requires { leaf.data(); })
            sum += static_cast<std::size_t>(leaf.size()) * sizeof(*leaf.data());
          else
            sum += sizeof leaf;
        },
        state);
    return sum;
  }
};

/// The cost of a memory that has read `tokens` tokens.
struct Milestone {
  Index tokens = 0;
  std::size_t bytes = 0;
  Stream stream;
  std::vector<double> writes, reads;  // seconds a chunk, one entry a round
};

/// The error for one age and every window: sums over the moments of measurement.
struct Fading {
  Index age = 0;
  std::vector<double> wrong, all;  // Σ‖x̃ − x‖², Σ‖x‖²

  double error(std::size_t window) const { return std::sqrt(wrong[window] / all[window]); }
};

std::vector<Fading> ages(const Settings& s) {
  const std::vector<double> none(s.windows.size());
  std::vector<Fading> fading;
  for (Index age = 1; age <= s.oldest; age *= 2) fading.push_back({age, none, none});
  return fading;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The signal x̃ at the current places of the tokens of a chunk.
Matrix recalled(const Layer& layer, const Stream& stream, Index age) {
  const Memory& memory = layer.memory;
  const Index length = memory.options().chunk;
  Eigen::MatrixXd psi(memory.basis().size(), length);
  for (Index l = 0; l < length; ++l) {
    const double within = (static_cast<double>(l) + 0.5) / static_cast<double>(length);
    const double at = signal_place(memory.options().contraction, stream.chunks, age, within);
    memory.basis().evaluate(at, psi.col(l));
  }
  return stream.state.coefficients * psi.cast<float>();
}

// The squared norm of averages over windows of `window` columns.
double square_of_averages(const Matrix& x, Index window) {
  double sum = 0;
  for (Index at = 0; at + window <= x.cols(); at += window)
    sum += static_cast<double>(x.middleCols(at, window).rowwise().mean().squaredNorm());
  return sum;
}

void look_back(const Settings& s, const Layer& layer, const Signal& signal, const Stream& stream,
               std::vector<Fading>& fading) {
  for (Fading& f : fading) {
    if (f.age > stream.chunks) return;
    const Matrix x = signal.chunk(stream.chunks - f.age);
    const Matrix away = recalled(layer, stream, f.age) - x;
    for (std::size_t w = 0; w < s.windows.size(); ++w) {
      f.wrong[w] += square_of_averages(away, s.windows[w]);
      f.all[w] += square_of_averages(x, s.windows[w]);
    }
  }
}

// Reads the whole stream. Copies it at every power of ten, and measures errors at 64 moments.
std::vector<Milestone> read_all(const Settings& s, const Layer& layer, const Signal& signal,
                                Index tokens, std::vector<Fading>& fading) {
  constexpr Index looks = 64;
  const Index chunks = (tokens + s.chunk - 1) / s.chunk;
  std::vector<Milestone> milestones;
  Stream stream{layer.initial_state(), {}};
  Progress progress("reading", chunks);
  double next = 1000;
  while (stream.chunks < chunks) {
    const auto cost = stream.step(layer, signal);
    const Index read = stream.chunks * s.chunk;
    if (static_cast<double>(read) >= next) {
      milestones.push_back({read, stream.bytes(), stream, {}, {}});
      next *= 10;
    }
    if (stream.chunks % std::max<Index>(1, chunks / looks) == 0)
      look_back(s, layer, signal, stream, fading);
    char note[64];
    std::snprintf(note, sizeof note, "%.1f million characters, %.0f ns each",
                  static_cast<double>(read) * 1e-6,
                  (cost.write + cost.read) * 1e9 / static_cast<double>(s.chunk));
    progress.show(stream.chunks, note);
  }
  std::erase_if(fading, [](const Fading& f) { return f.all[0] == 0; });  // older than the stream
  return milestones;
}

// Continues from every milestone by one chunk, in turn, many times: a slow phase of the machine
// affects all milestones alike.
void time_milestones(const Layer& layer, const Signal& signal, Index rounds,
                     std::vector<Milestone>& milestones) {
  Progress progress("timing", rounds);
  for (Index round = 0; round < rounds; ++round) {
    for (Milestone& m : milestones) {
      Stream stream = m.stream;
      stream.step(layer, signal);  // loads the state and the operators into the cache
      const auto cost = stream.step(layer, signal);
      m.writes.push_back(cost.write);
      m.reads.push_back(cost.read);
    }
    progress.show(round + 1, "");
  }
}

double cost(const Milestone& m) { return median(m.writes) + median(m.reads); }

// The first milestone with at least that many tokens; the last if there is none.
const Milestone& at(const std::vector<Milestone>& milestones, Index tokens) {
  for (const Milestone& m : milestones)
    if (m.tokens >= tokens) return m;
  return milestones.back();
}

std::string costs_csv(const Settings& s, const std::vector<Milestone>& milestones) {
  std::ostringstream csv;
  csv << "tokens,bytes,write_ns,read_ns\n";
  const double each = 1e9 / static_cast<double>(s.chunk);
  for (const Milestone& m : milestones)
    csv << m.tokens << "," << m.bytes << "," << median(m.writes) * each << ","
        << median(m.reads) * each << "\n";
  return csv.str();
}

std::string fading_csv(const Settings& s, const std::vector<Fading>& fading) {
  std::ostringstream csv;
  csv << "age,tokens_back";
  for (const Index window : s.windows) csv << ",error_" << window;
  csv << "\n";
  for (const Fading& f : fading) {
    csv << f.age << "," << f.age * s.chunk;
    for (std::size_t w = 0; w < s.windows.size(); ++w) csv << "," << f.error(w);
    csv << "\n";
  }
  return csv.str();
}

void print_costs(const Settings& s, const std::vector<Milestone>& milestones) {
  const Milestone& base = at(milestones, 10000);
  std::printf(
      "\n| characters read | bytes of memory | write, ns each | read, ns each | against 10^4 |\n"
      "|---:|---:|---:|---:|---:|\n");
  const double each = 1e9 / static_cast<double>(s.chunk);
  for (const Milestone& m : milestones)
    std::printf("| %td | %zu | %.0f | %.0f | %.3f |\n", m.tokens, m.bytes, median(m.writes) * each,
                median(m.reads) * each, cost(m) / cost(base));
}

void print_fading(const Settings& s, const std::vector<Fading>& fading) {
  std::printf("\n| chunks ago | characters ago |");
  for (const Index window : s.windows) std::printf(" error over %td |", window);
  std::printf("\n|---:|---:|");
  for (std::size_t w = 0; w < s.windows.size(); ++w) std::printf("---:|");
  for (const Fading& f : fading) {
    std::printf("\n| %td | %td |", f.age, f.age * s.chunk);
    for (std::size_t w = 0; w < s.windows.size(); ++w) std::printf(" %.3f |", f.error(w));
  }
  std::printf("\n\n");
}

void draw(const Settings& s, const std::vector<Milestone>& milestones,
          const std::vector<Fading>& fading) {
  const auto folder = std::filesystem::path(s.output);
  const auto costs = folder / "costs.csv", errors = folder / "fading.csv";
  open_to_write(costs) << costs_csv(s, milestones);
  open_to_write(errors) << fading_csv(s, fading);
  std::string curves;
  for (std::size_t w = 0; w < s.windows.size(); ++w)
    curves += quoted(errors) + " using 1:" + std::to_string(w + 3) +
              " skip 1 with linespoints pt 7 ps 0.5 lw 2 title 'average over " +
              std::to_string(s.windows[w]) + "', ";
  plot(folder / "long_context.png",
       "set datafile separator ','\nset grid\nset multiplot layout 1,2\nset logscale x\n"
       "set format x '10^{%T}'\nset key bottom right\nset xlabel 'characters read'\n"
       "set ylabel 'nanoseconds per character'\nplot [][0:] " +
           quoted(costs) + " using 1:3 skip 1 with linespoints pt 7 ps 0.5 lw 2 title 'write', " +
           quoted(costs) +
           " using 1:4 skip 1 with linespoints pt 7 ps 0.5 lw 2 title 'read'\n"
           "set logscale x 2\nset format x '%g'\nset key top left\nset xlabel 'chunks ago'\n"
           "set ylabel 'error of the signal'\nplot [][0:1.5<*] " +
           curves + "1 with lines dt 2 lc 'gray40' title 'the mean'\nunset multiplot\n");
}

// True if memory is constant and the signal fades, as the first lines of this file say. Timings are
// not checked.
bool as_promised(const Settings& s, const std::vector<Milestone>& milestones,
                 const std::vector<Fading>& fading) {
  const std::size_t window = std::min<std::size_t>(1, s.windows.size() - 1);
  const double share = fading.front().error(window) / fading.back().error(window);
  const bool constant = milestones.front().bytes == milestones.back().bytes, fades = share < 0.75;
  std::printf("memory: %s; error of the newest chunk over %td: %.2f of the oldest's, %s\n",
              constant ? "constant" : "GROWS", s.windows[window], share,
              fades ? "it fades" : "NO FADING");
  return constant && fades;
}

// Prints sizes that do not grow with the stream, and that of a key-value cache.
void print_sizes(const Settings& s, const Layer& layer, Index tokens) {
  const double newest =
      s.tau > 0 ? 1 - s.tau : static_cast<double>(s.chunk) / static_cast<double>(tokens);
  std::printf("the narrowest function is as wide as %.1f characters of the newest chunk\n",
              layer.memory.basis().narrowest() * static_cast<double>(s.chunk) / newest);
  const double number = sizeof(float) * 1e-6;
  std::printf("a key-value cache of all would take %.0f MB a layer\n",
              2 * static_cast<double>(s.d * tokens) * number);
}

void check(const Settings& s, Index tokens) {
  if (tokens < 1000)
    throw std::invalid_argument(std::to_string(tokens) +
                                " characters to read, expected at least 1000");
  for (const Index window : s.windows)
    if (window > s.chunk)
      throw std::invalid_argument("a window of " + std::to_string(window) +
                                  " characters does not fit into a chunk of " +
                                  std::to_string(s.chunk));
}

Settings parse(int argc, char** argv) {
  Settings s;
  CommandLine app("A text streamed through the long-term memory of the ∞-former");
  app.add_option("--text", s.text, "the text").environment("FASTWEIGHTS_TEXT").show_default();
  app.add_option("--output", s.output, "folder of tables and picture").show_default();
  app.add_positive("--repeat", s.repeat, "how many times the text is read");
  app.add_option("--tokens", s.tokens, "characters to read at most; 0: all")
      .not_negative()
      .show_default();
  app.add_option("--tau", s.tau, "contraction; 0: even, a new regression every chunk, so slow")
      .show_default();
  app.add_positive("--d", s.d, "features of the signal");
  app.add_positive("--heads", s.heads, "of the layer");
  app.add_positive("--functions", s.functions, "of the basis, N");
  app.add_option("--widths", s.widths, "of the functions").delimiter(',').show_default();
  app.add_positive("--samples", s.samples, "of the old signal, M");
  app.add_positive("--chunk", s.chunk, "characters to a write, L");
  app.add_positive("--ridge", s.ridge, "penalty of the regression");
  app.add_positive("--windows", s.windows, "characters that errors are averaged over")
      .delimiter(',');
  app.add_positive("--oldest", s.oldest, "chunks to look back");
  app.add_option("--seed", s.seed, "of weights and vectors").show_default();
  app.add_flag("--quick", s.quick, "the first million characters").excludes({"--tokens"});
  app.add_flag("--smoke", s.smoke, "a small memory, to see that it runs and fades");
  app.parse(argc, argv);
  use_own_folder(app, s.output, s.quick || s.smoke);
  if (s.quick) s.tokens = 1000000;
  if (s.smoke) {
    s.tokens = 100000, s.d = 16, s.functions = s.samples = s.chunk = 64;
    s.widths = {0.02}, s.windows = {1, 8, 64}, s.oldest = 32;
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const Settings s = parse(argc, argv);
  Eigen::setNbThreads(1);  // processor time is measured
  const Text text = read_text(s.text);
  Index tokens = s.repeat * static_cast<Index>(text.symbols.size());
  if (s.tokens > 0) tokens = std::min(tokens, s.tokens);
  check(s, tokens);
  make_folder(s.output);
  const Layer layer = make_layer(s);
  const Signal signal(s, text);
  std::printf("%s: %zu characters, %td to read\n", s.text.c_str(), text.symbols.size(), tokens);
  print_sizes(s, layer, tokens);
  std::fflush(stdout);  // before the progress bars
  auto fading = ages(s);
  auto milestones = read_all(s, layer, signal, tokens, fading);
  time_milestones(layer, signal, s.smoke ? 3 : 200, milestones);
  print_costs(s, milestones);
  print_fading(s, fading);
  draw(s, milestones, fading);
  return as_promised(s, milestones, fading) || !s.smoke ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "long_context: " << error.what() << "\n";
  return 1;
}
