#include <fastweights/continuous/components.hpp>
#include <fastweights/continuous/density.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

#include "tokens.hpp"

// Memories whose tokens are chunks of a sequence.

namespace {

using laws::Subject;

// Such memories do not allocate after the first two writes of a size (the second write is the first
// one with a past), even if the thread runs memories of other sizes in between.
template <class S> void check_chunks(const Subject& subject, const Subject& other) {
  Tokens<S> mine(subject, 2), others(other, 2);
  const auto run = [](Tokens<S>& tokens, bool apart) {
    for (Index t = 0; t < 2; ++t) apart ? tokens.write_and_read(t) : tokens.step(t);
  };
  run(mine, false);
  run(others, false);
  const auto rounds = [&](bool apart) {
    return usage_of([&] {
      for (int i = 0; i < 3; ++i) {
        run(mine, apart);
        run(others, apart);
      }
    });
  };
  const Usage stepping = rounds(false), apart = rounds(true);
  report(text<S>(subject), stepping, apart);
}

template <class S, class Sampling>
using Continuous = fw::ContinuousMemory<S, fw::MixtureDensity<S, fw::LearnedComponents<S>>,
                                        fw::GaussianBasis<S>, Sampling>;

// A prepared continuous memory does not allocate even in its first writes. With a horizon a stream
// goes through all of its operators.
template <class S, class Sampling> void check_prepared(const Subject& subject) {
  Tokens<S> tokens(subject, 2);
  const auto* typed = tokens.memory.template get<Continuous<S, Sampling>>();
  if (!typed) {
    std::printf("%s is of another type\n", subject.name.c_str());
    ++failures;
    return;
  }
  const auto& options = subject.options.more;
  typed->prepare(static_cast<Index>(options.at("chunk")));
  const Index writes = options.contains("horizon") ? 300 : 4;  // else all have one operator
  report(text<S>(subject) + ", prepared", {}, usage_of([&] {
           for (Index write = 0; write < writes; ++write) tokens.write_and_read(write % 2);
         }));
}

// Options of a continuous memory.
struct Sizes {
  double heads, functions, chunk, samples;
  double horizon = 0;  // of an even contraction; a fixed one without
};
Subject continuous(const char* name, Index d, const Sizes& sizes) {
  std::map<std::string, double> more{{"heads", sizes.heads}, {"functions", sizes.functions},
                                     {"chunk", sizes.chunk}, {"samples", sizes.samples},
                                     {"narrow", 0.01},       {"wide", 0.05},
                                     {"variance_bias", 0}};
  if (sizes.horizon > 0)
    more["horizon"] = sizes.horizon;
  else
    more["tau"] = 0.5;
  return {name, {.key_size = d, .more = more}};
}
Subject compressive(Index d, double heads, double chunk, double capacity) {
  return {"CompressiveMemory",
          {.key_size = d,
           .more = {{"heads", heads}, {"chunk", chunk}, {"capacity", capacity}, {"rate", 4}}}};
}

template <class S> void check_all() {
  const char *even = "ContinuousMemory", *sticky = "StickyContinuousMemory";
  // First, and each larger than the one before, so that no buffer of the thread is large enough.
  check_prepared<S, fw::EvenSampling>(continuous(even, 40, {4, 520, 20, 20}));
  check_prepared<S, fw::StickySampling>(continuous(sticky, 40, {4, 530, 530, 530}));
  // 152 operators
  check_prepared<S, fw::EvenSampling>(continuous(even, 40, {4, 30, 20, 20, 3010}));
  const Subject small = continuous(even, 32, {4, 64, 32, 32});
  check_chunks<S>(small, small);
  check_chunks<S>(continuous(sticky, 32, {4, 64, 32, 32}), small);
  check_chunks<S>(continuous(even, 300, {10, 512, 512, 512}), small);
  check_chunks<S>(continuous(sticky, 300, {10, 512, 512, 512}), small);
  check_chunks<S>(compressive(32, 4, 30, 50), compressive(300, 10, 512, 512));
}

}  // namespace

void check_chunked_memories() {
  Eigen::setNbThreads(1);  // Eigen's parallel products allocate
  check_all<float>();
  check_all<double>();
  Eigen::setNbThreads(0);
}
