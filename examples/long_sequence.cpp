// A sequence of 10^8 tokens in one memory of constant size, streamed over the processes of MPI:
// each has a part of the tokens, and the state of a head goes from one to the next. The first
// process then does all of it alone, and compares. With one process it runs once.
//
//   mpirun -n 2 build/release/examples/long_sequence              # ten minutes on two cores
//   mpirun -n 2 build/release/examples/long_sequence --quick      # a hundredth of it
//
// Every token writes a value under the key of one of the symbols, by the delta rule. So the memory
// holds the last value of each symbol. The first token's symbol never comes again: its value must
// still be there at the end.

#include <Eigen/QR>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <iostream>
#include <optional>

#include "report/command_line.hpp"
#include "training/processes.hpp"
#include "training/progress.hpp"

namespace {

using fw::Index;
using Memory = fw::DeltaRule<float>;
using State = fw::StateOf<Memory>;
using Matrix = Eigen::MatrixXf;

struct Settings {
  long tokens = 100000000;
  Index heads = 4, size = 64;
  bool quick = false, smoke = false;
};

constexpr Index block = 4096;           // tokens in memory at a time
constexpr long sample_every = 10007;    // tokens whose outputs are compared
constexpr std::uint64_t values = 1024;  // that symbols can have

/// The tokens of one head: token t writes values.col(value(t)) under keys.col(symbol(t)), and reads
/// keys.col(asked(t)). Symbol 0 is that of the first token alone.
class Stream {
 public:
  Stream(Index size, Index head) : seed_(static_cast<std::uint64_t>(head) + 1) {
    fw::Random random(seed_);
    Matrix square(size, size);
    random.fill(square);
    keys = Eigen::HouseholderQR<Matrix>(square).householderQ();
    values_.resize(size, static_cast<Index>(values));
    random.fill(values_);
  }

  Index symbol(long t) const { return t == 0 ? 0 : 1 + draw(t, 0, keys.cols() - 1); }
  auto value(long t) const { return values_.col(draw(t, 1, values_.cols())); }
  Index asked(long t) const { return draw(t, 2, keys.cols()); }

  Matrix keys;  // orthonormal

 private:
  Index draw(long t, long which, Index below) const {
    const auto at = static_cast<std::uint64_t>(3 * t + which);
    return static_cast<Index>(fw::uniform_at(seed_, at) * static_cast<double>(below));
  }

  std::uint64_t seed_;
  Matrix values_;
};

/// Result of a part of the tokens.
struct Result {
  std::vector<State> states;                // of every head
  std::vector<std::vector<float>> samples;  // of every head
  double seconds = 0;
};

/// Scans blocks of a head's tokens.
class Scanner {
 public:
  explicit Scanner(const Settings& s)
      : memory_({.key_size = s.size}), k_(s.size, block), v_(k_), q_(k_), y_(k_) {
    beta_.setOnes(block);
  }
  State initial_state() const { return fw::initial_state(memory_); }

  /// Tokens first … last − 1. Adds some of the outputs to `samples`.
  template <class After>
  void scan(const Stream& stream, long first, long last, State& state, std::vector<float>& samples,
            const After& after) {
    for (long t = first; t < last; t += block) {
      const Index count = std::min<long>(block, last - t);
      for (Index i = 0; i < count; ++i) {
        k_.col(i) = stream.keys.col(stream.symbol(t + i));
        v_.col(i) = stream.value(t + i);
        q_.col(i) = stream.keys.col(stream.asked(t + i));
      }
      fw::scan(memory_, state, {k_.leftCols(count), v_.leftCols(count), beta_.leftCols(count)},
               {q_.leftCols(count)}, {y_.leftCols(count)});
      for (Index i = 0; i < count; ++i)
        if ((t + i) % sample_every == 0)
          samples.insert(samples.end(), y_.col(i).begin(), y_.col(i).end());
      after(count);
    }
  }

 private:
  Memory memory_;
  Matrix k_, v_, q_, y_;
  Eigen::RowVectorXf beta_;
};

/// A part of the tokens, whose states `parallel` brings and takes on.
Result run(const Settings& s, const std::vector<Stream>& streams, long first, long last,
           fw::SequenceParallel& parallel, Progress* progress) {
  const auto start = std::chrono::steady_clock::now();
  Scanner scanner(s);
  Result result;
  long done = 0;
  for (const Stream& stream : streams) {
    State& state = result.states.emplace_back(scanner.initial_state());
    parallel.receive_state(fw::detail::object(state));
    scanner.scan(stream, first, last, state, result.samples.emplace_back(), [&](Index count) {
      done += count;
      if (progress != nullptr) progress->show(done, "");
    });
    parallel.send_state(fw::detail::object(state));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

/// Over the largest entry of `expected`.
double difference(const std::vector<float>& given, const std::vector<float>& expected) {
  using Map = Eigen::Map<const Eigen::VectorXf>;
  const auto size = static_cast<Index>(expected.size());
  const Map a(given.data(), size), b(expected.data(), size);
  return double{(a - b).cwiseAbs().maxCoeff<Eigen::PropagateNaN>()} /
         double{b.cwiseAbs().maxCoeff()};
}

/// The error of the memory at the last value of each symbol.
double recall_error(const Stream& stream, const State& state, long tokens) {
  std::vector<long> last(static_cast<std::size_t>(stream.keys.cols()), -1);
  last[0] = 0;
  Index found = 1;
  for (long t = tokens - 1; t > 0 && found < stream.keys.cols(); --t) {
    long& place = last[static_cast<std::size_t>(stream.symbol(t))];
    if (place < 0) ++found, place = t;
  }
  double worst = 0;
  for (Index symbol = 0; symbol < stream.keys.cols(); ++symbol) {
    const long place = last[static_cast<std::size_t>(symbol)];
    if (place < 0) continue;
    const Eigen::VectorXf error = state.W * stream.keys.col(symbol) - stream.value(place);
    worst = std::max(worst, double{error.cwiseAbs().maxCoeff<Eigen::PropagateNaN>()});
  }
  return worst;
}

/// All processes together; the first one gets the samples and the final states of all.
Result run_together(const Settings& s, const std::vector<Stream>& streams,
                    const Processes& processes) {
  const long parts = processes.count();
  const auto start_of = [&](long part) { return s.tokens * part / parts; };
  std::optional<Progress> progress;
  if (processes.is_first()) progress.emplace("together", s.heads * start_of(1));
  Result result;
  processes.run_round_robin(parts, [&](long part, fw::SequenceParallel& parallel) {
    result = run(s, streams, start_of(part), start_of(part + 1), parallel,
                 progress ? &*progress : nullptr);
  });
  result.seconds = processes.largest(result.seconds);
  for (auto& samples : result.samples) samples = processes.join(samples);
  for (State& state : result.states)
    processes.broadcast(fw::detail::object(state), processes.count() - 1);
  return result;
}

double report_recall(const Settings& s, const std::vector<Stream>& streams, const Result& result) {
  double worst = 0;
  for (std::size_t h = 0; h < streams.size(); ++h)
    worst = std::max(worst, recall_error(streams[h], result.states[h], s.tokens));
  std::printf("the memory against the last value of each symbol: largest error %.1e\n", worst);
  return worst;
}

double report_difference(const Settings& s, const Result& together, const Result& alone,
                         int count) {
  double states = 0, outputs = 0;
  for (std::size_t h = 0; h < together.states.size(); ++h) {
    outputs = std::max(outputs, difference(together.samples[h], alone.samples[h]));
    const auto apart = (together.states[h].W - alone.states[h].W).cwiseAbs();
    states = std::max(states, double{apart.maxCoeff<Eigen::PropagateNaN>()});
  }
  std::printf(
      "one process alone: %.1f s, %.2f times as long (at most %.2f)\n"
      "largest difference: %.1e in %zu outputs of each head, %.1e in the final states\n",
      alone.seconds, alone.seconds / together.seconds,
      double(s.heads * count) / double(s.heads + count - 1), outputs,
      together.samples[0].size() / static_cast<std::size_t>(s.size), states);
  return std::max(states, outputs);
}

int run(const Settings& s, const Processes& processes) {
  if (s.size < 2) throw std::invalid_argument("--size is 1, expected at least 2 symbols");
  std::vector<Stream> streams;
  for (Index h = 0; h < s.heads; ++h) streams.emplace_back(s.size, h);
  const Result together = run_together(s, streams, processes);
  std::printf("%ld tokens, %td heads of %td x %td, %d processes: %.1f s\n", s.tokens, s.heads,
              s.size, s.size, processes.count(), together.seconds);
  double worst = report_recall(s, streams, together);
  if (processes.count() > 1 && processes.is_first()) {
    Whole whole;
    Progress progress("alone", s.heads * s.tokens);
    const Result alone = run(s, streams, 0, s.tokens, whole, &progress);
    worst = std::max(worst, report_difference(s, together, alone, processes.count()));
  }
  return worst < 1e-2 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  Settings s;
  CommandLine app("A long sequence over processes, against one process");
  const Option tokens = app.add_positive("--tokens", s.tokens, "of the sequence");
  app.add_positive("--heads", s.heads, "memories");
  app.add_positive("--size", s.size, "of keys and values, and the number of symbols");
  app.add_flag("--quick", s.quick, "a million tokens");
  app.add_flag("--smoke", s.smoke, "some thousand tokens");
  app.parse(argc, argv);
  if (!tokens.given() && s.quick) s.tokens = 1000000;
  if (!tokens.given() && s.smoke) s.tokens = 20000;
  const Processes processes;
  return processes.run("long_sequence", [&] { return run(s, processes); });
} catch (const std::exception& error) {
  std::cerr << "long_sequence: " << error.what() << "\n";
  return 1;
}
