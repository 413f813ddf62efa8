// No memory takes heap in a step, and no model in a token. Prints a line each and fails where one
// does.

#include <cstdio>
#include <cstdlib>
#include <fastweights/fastweights.hpp>
#include <fastweights/memories/amx_scan.hpp>
#include <fastweights/testing/sequences.hpp>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "counter.hpp"
#include "emulated_tiles.hpp"

namespace {

using fw::Dynamic;
using fw::Index;

constexpr Index tokens = 100, passes = 100;  // 10⁴ steps: one sequence again and again
int failures = 0;

template <class F> long allocations_of(const F& f) {
  const long before = allocations();
  f();
  return allocations() - before;
}

// A zero below means something only if whatever allocates is counted.
template <class F> void expect_counted(const char* what, const F& f) {
  const long counted = allocations_of(f);
  std::printf("%-62s %ld allocations (the control: at least 1)\n", what, counted);
  if (counted < 1) ++failures;
}

// Lets the compiler believe that p is looked at, so that it can't leave the allocation out.
void use(void* p) { asm volatile("" : : "r"(p) : "memory"); }

void check_the_counter() {
  const auto then_free = [](auto allocate) {
    return [allocate] {
      void* p = allocate();
      use(p);
      std::free(p);
    };
  };
  expect_counted("malloc", then_free([] { return std::malloc(100); }));
  expect_counted("calloc", then_free([] { return std::calloc(10, 10); }));
  expect_counted("realloc", then_free([] { return std::realloc(nullptr, 100); }));
  expect_counted("aligned_alloc", then_free([] { return std::aligned_alloc(64, 128); }));
  expect_counted("posix_memalign", then_free([] {
                   void* p = nullptr;
                   return posix_memalign(&p, 64, 128) == 0 ? p : nullptr;
                 }));
  expect_counted("operator new", [] { use(std::make_unique<int>(1).get()); });
  struct alignas(128) Aligned {
    int number = 1;
  };
  expect_counted("operator new with alignment", [] { use(std::make_unique<Aligned>().get()); });
  expect_counted("an Eigen matrix", [] { use(Eigen::MatrixXf(10, 10).data()); });
  std::thread([] {
    expect_counted("operator new in another thread", [] { use(std::make_unique<int>(1).get()); });
  }).join();
}

template <class M> auto token(const M& m, fw::testing::Sequences<M>& all, Index t) {
  const auto signature = m.signature();
  const auto at = [t]<class Token>(const auto& views, const auto& extents) {
    return fw::detail::token_at<Token>(views, extents, t);
  };
  return std::make_tuple(at.template operator()<fw::WriteToken<M>>(
                             fw::view<fw::WriteSequence<M>>(all.inputs), signature.write()),
                         at.template operator()<fw::ReadToken<M>>(
                             fw::view<fw::ReadSequence<M>>(all.queries), signature.read()),
                         at.template operator()<fw::OutToken<M>>(
                             fw::view<fw::OutSequence<M>>(all.outputs), signature.out()));
}

template <class M> std::string label(const M& m, const char* variant) {
  const auto signature = m.signature();
  const bool fixed = decltype(fw::OutToken<M>::output)::RowsAtCompileTime != Dynamic;
  return std::string(M::name) + " " + variant + " d_v " + std::to_string(signature.dv) + " d_k " +
         std::to_string(signature.dk) + (fixed ? " fixed" : " dynamic");
}

// Calls f(state, t) for every token of every pass.
template <class M, class F> long allocations_of_passes(const M& m, const F& f) {
  auto state = fw::initial_state(m);
  return allocations_of([&] {
    for (Index pass = 0; pass < passes; ++pass) {
      fw::set_zero(state);
      for (Index t = 0; t < tokens; ++t) f(state, t);
    }
  });
}

void report(const std::string& what, long stepping, long apart) {
  std::printf("%-72s %ld in steps, %ld in writes and reads\n", what.c_str(), stepping, apart);
  if (stepping != 0 || apart != 0) ++failures;
}

template <class M> void check(const M& m, const char* variant = "") {
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, tokens, random, /*positive=*/true);
  const long stepping = allocations_of_passes(m, [&](auto& state, Index t) {
    const auto [input, query, output] = token(m, all, t);
    fw::step(m, state, input, query, output);
  });
  const long apart = allocations_of_passes(m, [&](auto& state, Index t) {
    const auto [input, query, output] = token(m, all, t);
    fw::write(m, state, input);
    fw::read(m, state, query, output);
  });
  report(label(m, variant), stepping, apart);
}

// As users write it: columns of matrices of their own, which turn into views on the way.
template <class M> void check_columns(const M& m, Index d) {
  const Eigen::MatrixXf K = Eigen::MatrixXf::Random(d, tokens), V = K, Q = K;
  const Eigen::VectorXf beta = Eigen::VectorXf::Constant(tokens, 0.5f);
  Eigen::MatrixXf Y(d, tokens);
  const long stepping = allocations_of_passes(m, [&](auto& state, Index t) {
    fw::step(m, state, {K.col(t), V.col(t), beta[t]}, {Q.col(t)}, {Y.col(t)});
  });
  const long apart = allocations_of_passes(m, [&](auto& state, Index t) {
    fw::write(m, state, {K.col(t), V.col(t), beta[t]});
    fw::read(m, state, {Q.col(t)}, {Y.col(t)});
  });
  report(label(m, "columns"), stepping, apart);
}

template <int D> void check_deferred(Index d) {
  using Delta = fw::DeltaRule<float, D, D>;
  using Gated = fw::GatedDeltaRule<float, D, D, fw::KeyValueBetaVectorDecay>;
  check(fw::Deferred(Delta(d, d)));
  check(fw::Deferred<Delta, 8, Eigen::bfloat16>(Delta(d, d)), "bfloat16");
  check(fw::Deferred(Gated(d, d)), "vector decay");
}

template <int D> void check_memories(Index d) {
  using S = float;
  using fw::KeyValueVectorBeta, fw::NoNormaliser, fw::WhenFull;
  using Normaliser = fw::AttentionNormaliser<S>;
  using Cache = fw::KeyValueCache<S, D, D>;
  check(fw::LinearAttention<S, D, D>(d, d));
  check(fw::LinearAttention<S, D, D, Normaliser>(d, d), "normalised");
  check(fw::DeltaRule<S, D, D>(d, d));
  check_columns(fw::DeltaRule<S, D, D>(d, d), d);
  check(fw::DeltaRule<S, D, D, Normaliser>(d, d), "normalised");
  check(fw::DeltaRule<S, D, D, NoNormaliser, KeyValueVectorBeta>(d, d), "vector beta");
  check(fw::DeltaRule<S, D, D, Normaliser, KeyValueVectorBeta>(d, d), "normalised, vector beta");
  check(fw::GatedLinearAttention<S, D, D>(d, d));
  check(fw::GatedLinearAttention<S, D, D, fw::KeyValueDecay>(d, d), "one decay");
  check(fw::GatedDeltaRule<S, D, D>(d, d));
  check(fw::GatedDeltaRule<S, D, D, fw::KeyValueBetaVectorDecay>(d, d), "vector decay");
  check(fw::HebbianMemory<S, D, D>(d, d));
  check_deferred<D>(d);
  check(fw::Programmer1991<S, D, D, fw::Relu>(d, d));
  check(Cache(d, d, {tokens / 2, WhenFull::slide}), "sliding");
  check(Cache(d, d, {tokens, WhenFull::refuse}), "refusing");
}

template <int D> void check_recurrent(Index d) {
  check(fw::DeltaRnn<float, D, D>(d, d));
  check(fw::DeltaLstm<float, D, D>(d, d));
  check(fw::RecurrentDeltaNet<float, D, D>(d, d));
  check(fw::SelfReferentialMatrix<float, D, D>(d, d));
}

template <template <int, int> class Memory, class Map, int D> void check_behind(Index d, Map map) {
  using M = Memory<D, Map::template fixed_features<D>>;
  check(fw::FeatureMapped<M, Map, D>(M(d, map.features(d)), d, map));
}

template <int Dv, int Dk> using Delta = fw::DeltaRule<float, Dv, Dk>;
template <int Dv, int Dk>
using Sum = fw::LinearAttention<float, Dv, Dk, fw::AttentionNormaliser<float>>;
template <int Dv, int Dk> using Gated = fw::GatedLinearAttention<float, Dv, Dk>;

template <int D> void check_feature_mapped(Index d) {
  using Dpfp = fw::SumNormalised<fw::Dpfp<2>>;
  check_behind<Sum, fw::EluPlusOne, D>(d, {});
  check_behind<Delta, fw::L2Normalised<fw::IdentityMap>, D>(d, {});
  check_behind<Delta, fw::SumNormalised<fw::EluPlusOne>, D>(d, {});
  check_behind<Delta, Dpfp, D>(d, {});
  check_behind<Gated, Dpfp, D>(d, {});
  check_behind<Sum, fw::FavorPlus<float>, D>(d, fw::FavorPlus<float>(d, 2 * d, 1));
}

// A language model that streams: nothing after the first token has made room.
template <class M, class Map> void check_model(const M& m) {
  using Block =
      fw::PreNormBlock<fw::LayerNorm<float>, fw::FastWeightLayer<M, Map>, fw::FeedForward<float>>;
  const Index width = 32;
  fw::LanguageModel<Block> model(
      63, 2,
      Block(fw::FastWeightLayer<M, Map>({.d_model = width, .heads = 2}, m),
            fw::FeedForward<float>(width, 4 * width)));
  fw::Random random(1);
  fw::initialise(model, random);
  auto state = model.initial_state();
  typename fw::LanguageModel<Block>::Trace trace;
  Eigen::MatrixXf logits(63, 1);
  const auto read = [&](int symbol) { model.forward(state, std::span(&symbol, 1), logits, trace); };
  read(0);
  const long streaming = allocations_of([&] {
    for (int t = 0; t < 10000; ++t) read(t % 63);
  });
  report("LanguageModel around " + std::string(M::name), streaming, 0);
}

void check_self_referential_layer() {
  fw::SelfReferentialLayer<float> layer({.d_model = 32, .heads = 2});
  fw::Random random(1);
  fw::initialise(layer, random);
  auto state = layer.initial_state();
  fw::SelfReferentialLayer<float>::Trace trace;
  const Eigen::MatrixXf x = Eigen::MatrixXf::Random(32, tokens);
  Eigen::MatrixXf y(32, tokens);
  layer.forward(state, x.col(0), y.col(0), trace);
  const long streaming = allocations_of([&] {
    for (Index t = 0; t < tokens; ++t) layer.forward(state, x.col(t), y.col(t), trace);
  });
  report("SelfReferentialLayer", streaming, 0);
}

// The same for a layer that is no memory's; and a sequence with its gradients, in a trace that has
// seen one.
template <class Layer> void check_layer(Layer layer, const char* what = "") {
  fw::Random random(1);
  fw::initialise(layer, random);
  const Eigen::MatrixXf x = Eigen::MatrixXf::Random(layer.inputs(), tokens);
  Eigen::MatrixXf y(layer.outputs(), tokens), dx(layer.inputs(), tokens);
  auto state = layer.initial_state();
  typename Layer::Trace streamed, trained;
  Layer grad = layer;
  layer.forward(state, x.col(0), y.col(0), streamed);
  const long streaming = allocations_of([&] {
    for (Index pass = 0; pass < passes; ++pass)
      for (Index t = 0; t < tokens; ++t) layer.forward(state, x.col(t), y.col(t), streamed);
  });
  const auto train = [&] {
    layer.forward(state, x, y, trained, fw::Pass::train);
    layer.backward(x, trained, y, dx, grad);
  };
  Eigen::setNbThreads(1);  // threads that share a product take heap for it
  state = layer.initial_state();
  train();
  const long training = allocations_of([&] {
    for (int pass = 0; pass < 5; ++pass) train();
  });
  Eigen::setNbThreads(0);
  std::printf("%-72s %ld in steps, %ld in training\n",
              (std::string(Layer::name) + " of " + std::to_string(layer.outputs()) + what).c_str(),
              streaming, training);
  if (streaming != 0 || training != 0) ++failures;
}

// Before and after the window is full.
void check_relative_attention(Index d, Index window) {
  check_layer(fw::RelativeAttention<float>({.d_model = d, .heads = 2, .window = window}));
}

void check_recurrent(Index units) {
  check_layer(fw::Rnn<float, fw::Relu>(100, units));
  check_layer(fw::Lstm<float>(100, units));
  const auto fast = [&](fw::FastWeightsForm form) {
    return fw::FastWeightsRnn<float>(
        {.inputs = 50, .hidden = units, .inner = 2, .learn_rates = true, .form = form});
  };
  check_layer(fast(fw::FastWeightsForm::matrix), ", matrix");
  check_layer(fast(fw::FastWeightsForm::attention), ", attention");
}

// Memories that take chunks: no heap after the first update of a size (and the second, which is the
// first with a past), whichever memories of other sizes the thread runs in between.
template <class M, class Other>
void check_chunks(const M& m, const Other& other, const char* what) {
  fw::Random random(1);
  const auto make = [&](const auto& rule) {
    return std::make_pair(fw::testing::random_sequences(rule, 2, random), fw::initial_state(rule));
  };
  auto mine = make(m);
  auto others = make(other);
  const auto run = [](const auto& rule, auto& some, bool apart) {
    auto& s = some.second;
    for (Index t = 0; t < 2; ++t) {
      const auto [input, query, output] = token(rule, some.first, t);
      if (apart) {
        fw::write(rule, s, input);
        fw::read(rule, s, query, output);
      } else {
        fw::step(rule, s, input, query, output);
      }
    }
  };
  run(m, mine, false);
  run(other, others, false);
  const auto rounds = [&](bool apart) {
    return allocations_of([&] {
      for (int i = 0; i < 3; ++i) {
        run(m, mine, apart);
        run(other, others, apart);
      }
    });
  };
  Eigen::setNbThreads(1);  // threads that share a product take heap for it
  const long stepping = rounds(false), apart = rounds(true);
  Eigen::setNbThreads(0);
  report(std::string(M::name) + " " + what + " d " + std::to_string(m.options().d), stepping,
         apart);
}

// The scan by tiles takes heap in the first call of a size only, whichever is run in between.
void check_tiles(fw::AmxPrecision precision) {
  const auto scan = [&](Index dv, Index dk, Index steps) {
    using M = fw::DeltaRule<float>;
    const M m(dv, dk);
    fw::Random random(1);
    auto all = fw::testing::random_sequences(m, steps, random);
    auto state = fw::initial_state(m);
    return allocations_of([&] {
      fw::detail::tile_scan<EmulatedTiles>(m, state, fw::view<fw::WriteSequence<M>>(all.inputs),
                                           fw::view<fw::ReadSequence<M>>(all.queries),
                                           fw::view<fw::OutSequence<M>>(all.outputs), precision);
    });
  };
  scan(70, 100, 100);
  report(std::string("amx_scan ") + (precision == fw::AmxPrecision::bf16 ? "bf16" : "split"),
         scan(70, 100, 200) + scan(1, 1, 70) + scan(64, 64, 1) + scan(70, 100, 64), 0);
}

template <class S, class Sampling>
auto continuous(Index d, Index heads, Index functions, Index length) {
  using Density = fw::LocatedDensity<S, fw::LearnedLocation<S>>;
  using M = fw::ContinuousMemory<S, Density, fw::GaussianBasis<S>, Sampling>;
  typename M::Options o;
  o.d = d;
  o.heads = heads;
  o.chunk = o.samples = length;
  o.contraction = fw::Contraction::fixed(0.5);
  return M(o, {functions, {0.01, 0.05}}, Density{fw::LearnedLocation<S>(functions)});
}

template <class S> void check_continuous(const char* scalar) {
  using fw::EvenSampling, fw::StickySampling;
  const auto even = std::string(scalar) + ", even,", sticky = std::string(scalar) + ", sticky,";
  const auto small = continuous<S, EvenSampling>(32, 4, 64, 32);
  check_chunks(small, small, even.c_str());
  check_chunks(continuous<S, StickySampling>(32, 4, 64, 32), small, sticky.c_str());
  check_chunks(continuous<S, EvenSampling>(300, 10, 512, 512), small, even.c_str());
  check_chunks(continuous<S, StickySampling>(300, 10, 512, 512), small, sticky.c_str());
  const fw::CompressiveMemory<S> slots({32, 4, 30, 50, 4}), more({300, 10, 512, 512, 4});
  check_chunks(slots, more, scalar);
}

}  // namespace

int main() {
  check_the_counter();
  check_memories<3>(3);
  check_memories<64>(64);
  for (const Index d : {3, 64, 256}) check_memories<Dynamic>(d);
  check(fw::Programmer1991<float, 3, 3, fw::Tanh>(3, 3), "tanh");
  check_recurrent<3>(3);
  for (const Index d : {3, 64}) check_recurrent<Dynamic>(d);
  check_feature_mapped<3>(3);
  check_feature_mapped<16>(16);
  for (const Index d : {3, 64}) check_feature_mapped<Dynamic>(d);
  check_model<fw::DeltaRule<float>, fw::L2Normalise>(fw::DeltaRule<float>(16, 16));
  check_model<fw::GatedDeltaRule<float>, fw::L2Normalise>(fw::GatedDeltaRule<float>(16, 16));
  check_model<fw::KeyValueCache<float>, fw::IdentityMap>(
      fw::KeyValueCache<float>(16, 16, {.capacity = 100}));
  check_model<fw::DeltaRnn<float>, fw::SumNormalised<fw::EluPlusOne>>(fw::DeltaRnn<float>(16, 16));
  check_model<fw::RecurrentDeltaNet<float>, fw::IdentityMap>(fw::RecurrentDeltaNet<float>(16, 16));
  check_self_referential_layer();
  check_relative_attention(6, 10);
  check_relative_attention(64, 128);
  for (const Index units : {3, 20, 100}) check_recurrent(units);
  check_tiles(fw::AmxPrecision::bf16);
  check_tiles(fw::AmxPrecision::split);
  check_continuous<float>("float");
  check_continuous<double>("double");
  std::printf(failures ? "%d of the lines above are wrong\n" : "no step takes heap\n", failures);
  return failures ? 1 : 0;
}
