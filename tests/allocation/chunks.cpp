#include <fastweights/fastweights.hpp>
#include <fastweights/memories/adaptors/amx_scan.hpp>
#include <utility>

#include "checks.hpp"
#include "support/emulated_tiles.hpp"

namespace {

// Memories of chunks do not allocate after the first two writes of a size (the second write is the
// first one with a past), even if the thread runs memories of other sizes in between.
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
    return usage_of([&] {
      for (int i = 0; i < 3; ++i) {
        run(m, mine, apart);
        run(other, others, apart);
      }
    });
  };
  Eigen::setNbThreads(1);  // Eigen's parallel products allocate
  const Usage stepping = rounds(false), apart = rounds(true);
  Eigen::setNbThreads(0);
  report(std::string(M::name) + " " + what + " d " + std::to_string(m.options().d), stepping,
         apart);
}

// A prepared continuous memory does not allocate even in its first writes. With even(horizon) a
// stream goes through all of its operators.
template <class M> void check_prepared(const M& m, const char* what) {
  const Index length = m.options().chunk;
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 2, random);
  auto state = fw::initial_state(m);
  m.prepare(length);
  Eigen::setNbThreads(1);  // Eigen's parallel products allocate
  const Usage writing = usage_of([&] {
    for (int write = 0; write < 300; ++write) {
      const auto [input, query, output] = token(m, all, write % 2);
      fw::write(m, state, input);
      fw::read(m, state, query, output);
    }
  });
  Eigen::setNbThreads(0);
  report(std::string(M::name) + " prepared, " + what + " d " + std::to_string(m.options().d), {},
         writing);
}

// The scan by tiles allocates only in the first call of a size, even with other sizes in between.
void check_tiles(fw::AmxPrecision precision) {
  const auto scan = [&](Index dk, Index dv, Index steps) {
    using M = fw::DeltaRule<float>;
    const M m({dk, dv});
    fw::Random random(1);
    auto all = fw::testing::random_sequences(m, steps, random);
    auto state = fw::initial_state(m);
    return usage_of([&] {
      fw::detail::tile_scan<EmulatedTiles>(m, state, fw::view<fw::WriteSequence<M>>(all.inputs),
                                           fw::view<fw::ReadSequence<M>>(all.queries),
                                           fw::view<fw::OutSequence<M>>(all.outputs), precision);
    });
  };
  scan(100, 70, 100);
  report(std::string("amx_scan ") + (precision == fw::AmxPrecision::bf16 ? "bf16" : "split"),
         scan(100, 70, 200) + scan(1, 1, 70) + scan(64, 64, 1) + scan(100, 70, 64), {});
}

template <class S, class Sampling>
auto continuous(Index d, Index heads, Index functions, Index length,
                fw::Contraction contraction = fw::Contraction::fixed(0.5)) {
  using Density = fw::MixtureDensity<S, fw::LearnedComponents<S>>;
  using M = fw::ContinuousMemory<S, Density, fw::GaussianBasis<S>, Sampling>;
  typename M::Options o;
  o.d = d;
  o.heads = heads;
  o.chunk = o.samples = length;
  o.contraction = contraction;
  return M(o, {functions, {0.01, 0.05}}, Density{fw::LearnedComponents<S>(functions)});
}

template <class S> void check_continuous(const char* scalar) {
  using fw::EvenSampling, fw::StickySampling;
  const auto even = std::string(scalar) + ", even,", sticky = std::string(scalar) + ", sticky,";
  // First, and each larger than the one before, so that no buffer of the thread is large enough.
  check_prepared(continuous<S, EvenSampling>(40, 4, 520, 20), (even + " fixed").c_str());
  check_prepared(continuous<S, StickySampling>(40, 4, 530, 530), (sticky + " fixed").c_str());
  const auto horizon = fw::Contraction::even(3010);  // 152 operators
  check_prepared(continuous<S, EvenSampling>(40, 4, 30, 20, horizon), (even + " horizon").c_str());
  const auto small = continuous<S, EvenSampling>(32, 4, 64, 32);
  check_chunks(small, small, even.c_str());
  check_chunks(continuous<S, StickySampling>(32, 4, 64, 32), small, sticky.c_str());
  check_chunks(continuous<S, EvenSampling>(300, 10, 512, 512), small, even.c_str());
  check_chunks(continuous<S, StickySampling>(300, 10, 512, 512), small, sticky.c_str());
  const fw::CompressiveMemory<S> slots({32, 4, 30, 50, 4}), more({300, 10, 512, 512, 4});
  check_chunks(slots, more, scalar);
}

}  // namespace

void check_chunked_memories() {
  check_tiles(fw::AmxPrecision::bf16);
  check_tiles(fw::AmxPrecision::split);
  check_continuous<float>("float");
  check_continuous<double>("double");
}
