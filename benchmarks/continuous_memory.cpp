#include <fastweights/layers/attention/long_term_layer.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <map>

#include "counters.hpp"
#include "machine.hpp"
#include "suite.hpp"

/// \file
/// The ∞-former's memory: write, read and the layer around it. The sizes are the published ones
/// with d = 64; each benchmark changes one of them:
///
///     {operation}/continuous_memory/{scalar}/d:64/H:1/N:512/L:512/M:512/read:10000
///
/// An iteration writes L tokens, or reads L queries. `read` is the number of tokens before that:
/// the benchmark writes a few chunks and sets the state's counter to `read`. With a fixed
/// contraction the time must not depend on it. `layer_read` reads through LongTermLayer, with no
/// write in between. `layer_step` writes first, so that keys and values are projected again.
/// `operator` is one ridge regression in double, which a write with even contraction has to solve
/// if the cache has no operator for it.

namespace {

using fw::Index;

struct Sizes {
  Index d = 64, functions = 512, chunk = 512, samples = 512, read = 10000;
  Index heads() const { return std::max<Index>(1, d / 64); }
  auto operator<=>(const Sizes&) const = default;
};

template <class S, class Sampling> struct Subject {
  using Components = fw::LearnedComponents<S>;
  using Memory =
      fw::ContinuousMemory<S, fw::MixtureDensity<S, Components>, fw::GaussianBasis<S>, Sampling>;
  using Layer = fw::LongTermLayer<Memory>;
  using Matrix = Eigen::Matrix<S, fw::Dynamic, fw::Dynamic>;

  Sizes sizes;
  Layer layer = make_layer(sizes);
  typename Layer::State state = layer.initial_state();
  typename Layer::Trace trace;
  Matrix x = Matrix::Random(sizes.d, sizes.chunk), y = x;
  Matrix draws = (Matrix::Random(1, layer.draws()).array() + S(1)) / S(2);

  explicit Subject(const Sizes& s) : sizes(s) {
    for (int chunk = 0; chunk < 3; ++chunk) {
      write();
      read();
    }
  }

  void write() { layer.write(state, x, trace, fw::Pass::infer, draws); }
  void read() { fw::read(layer.memory, state, {x}, {y}); }
  void layer_read() { layer.read(state, x, y, trace); }

 private:
  static Layer make_layer(const Sizes& s) {
    // Operators are expensive and depend on sizes only. Copies of a memory share them.
    static std::map<Sizes, Memory> known;
    Sizes key = s;
    key.read = 0;
    typename Memory::Options o;
    o.d = s.d;
    o.heads = s.heads();
    o.chunk = s.chunk;
    o.samples = s.samples;
    o.contraction = fw::Contraction::fixed(0.75);
    o.regression.ridge = 1;
    fw::Random random(1);
    Components components(s.functions);
    components.initialise(random);
    const fw::GaussianBasis<S> basis(s.functions, {0.005, 0.01});
    Layer layer({.heads = o.heads},
                known.try_emplace(key, o, basis, fw::MixtureDensity<S, Components>{components})
                    .first->second,
                {});
    fw::initialise(layer, random);
    return layer;
  }
};

// The operator includes evenly spaced samples.
double write_flops(const Sizes& s, bool sticky = false) {
  const Index past = sticky ? 2 * s.samples : s.functions;
  return 2 * static_cast<double>(s.d * s.functions * (s.chunk + past));
}
// The densities are not counted.
double read_flops(const Sizes& s) { return 4 * static_cast<double>(s.d * s.functions * s.chunk); }
// With the output projection.
double layer_read_flops(const Sizes& s) {
  return read_flops(s) + 2 * static_cast<double>(s.d * s.d * s.chunk);
}
double layer_step_flops(const Sizes& s) {
  return write_flops(s) + layer_read_flops(s) + 4 * static_cast<double>(s.d * s.d * s.functions);
}
double operator_flops(const Sizes& s) {
  const auto n = static_cast<double>(s.functions);
  return 2 * n * n * (2 * static_cast<double>(s.chunk + s.samples) + n / 3);
}

template <class S> void report(benchmark::State& state, const Sizes& s, double flops) {
  state.SetLabel("dynamic");
  const auto tokens = static_cast<double>(s.chunk * s.heads());
  measure::per_second(state, "ns_per_token_head", tokens * 1e-9, /*inverse=*/true);
  measure::per_second(state, "fma_peak_fraction", flops / machine::fma_peak<S>());
}

void add(const std::string& operation, const char* scalar, const Sizes& s,
         void (*run)(benchmark::State&, const Sizes&)) {
  std::string name = operation + '/' + scalar;
  const auto put = [&name](const char* what, Index size) {
    name += std::string("/") + what + ':' + std::to_string(size);
  };
  put("d", s.d);
  put("H", s.heads());
  put("N", s.functions);
  put("L", s.chunk);
  put("M", s.samples);
  put("read", s.read);
  benchmark::RegisterBenchmark(name.c_str(), [s, run](benchmark::State& state) {
    run(state, s);
  })->Threads(1);
}

using Even = Subject<float, fw::EvenSampling>;
using Sticky = Subject<float, fw::StickySampling>;

// Every iteration starts at the same token count.
template <class Which> void write(benchmark::State& state, const Sizes& s) {
  Which subject(s);
  for (auto _ : state) {
    subject.state.tokens = s.read;
    subject.write();
  }
  report<float>(state, s, write_flops(s, std::is_same_v<Which, Sticky>));
}

template <class Which> void read(benchmark::State& state, const Sizes& s) {
  Which subject(s);
  subject.state.tokens = s.read;
  for (auto _ : state) subject.read();
  report<float>(state, s, read_flops(s));
}

void layer_read(benchmark::State& state, const Sizes& s) {
  Even subject(s);
  subject.state.tokens = s.read;
  for (auto _ : state) subject.layer_read();
  report<float>(state, s, layer_read_flops(s));
}

void layer_step(benchmark::State& state, const Sizes& s) {
  Even subject(s);
  for (auto _ : state) {
    subject.state.tokens = s.read;
    subject.write();
    subject.layer_read();
  }
  report<float>(state, s, layer_step_flops(s));
}

void make_operator(benchmark::State& state, const Sizes& s) {
  const fw::GaussianBasis<float> basis(s.functions, {0.005, 0.01});
  const double tau = static_cast<double>(s.read) / static_cast<double>(s.read + s.chunk);
  const auto targets = fw::detail::cell_centres(s.samples, s.chunk, tau, 0.5);
  for (auto _ : state) benchmark::DoNotOptimize(fw::ridge_operator(basis, targets, 1));
  report<double>(state, s, operator_flops(s));
}

void add_each(const Sizes& s) {
  add("write/continuous_memory", "float", s, write<Even>);
  add("read/continuous_memory", "float", s, read<Even>);
}

// Sticky sampling: random positions, where attention was.
void add_sticky(const Sizes& s) {
  add("write/continuous_memory_sticky", "float", s, write<Sticky>);
  add("read/continuous_memory_sticky", "float", s, read<Sticky>);
}

void add_layer(const Sizes& s) {
  add("layer_read/continuous_memory", "float", s, layer_read);
  add("layer_step/continuous_memory", "float", s, layer_step);
}

}  // namespace

void add_continuous_memory() {
  for (const Index read : {1000, 10000, 100000, 1000000, 10000000}) add_each({.read = read});
  for (const Index d : {128, 256}) add_each({.d = d});
  for (const Index functions : {128, 256, 1024}) add_each({.functions = functions});
  for (const Index chunk : {1, 32, 128, 1024}) add_each({.chunk = chunk});
  for (const Index samples : {128, 256, 1024}) add_each({.samples = samples});
  for (const Index samples : {128, 512}) add_sticky({.samples = samples});
  for (const Index d : {64, 256})
    for (const Index chunk : {1, 32, 512}) add_layer({.d = d, .chunk = chunk});
  for (const Index functions : {128, 256, 512, 1024})
    add("operator/continuous_memory", "double", {.functions = functions}, make_operator);
}
