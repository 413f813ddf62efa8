#include <algorithm>

#include "tokens.hpp"

// Every memory of the table.

namespace {

using laws::Subject;

template <class S> void check_memory(const Subject& subject, Index passes) {
  Tokens<S> tokens(subject, sequence_length);
  const auto pass = [&](const auto& call) {
    tokens.state = tokens.initial;
    for (Index t = 0; t < sequence_length; ++t) call(t);
  };
  const auto usage = [&](const auto& call) {
    return usage_of([&] {
      for (Index i = 0; i < passes; ++i) pass(call);
    });
  };
  const auto step = [&](Index t) { tokens.step(t); };
  // The first writes of chunks make operators and buffers of the thread.
  if (tokens.has_chunks()) pass(step);
  const Usage stepping = usage(step);
  const Usage apart = usage([&](Index t) { tokens.write_and_read(t); });
  report(text<S>(subject), stepping, apart, usage([&](Index t) { tokens.checked_step(t); }));
}

// A cache that grows allocates whenever it does.
Subject with_fixed_room(Subject subject) {
  const auto refuse = subject.options.more.find("refuse");
  if (subject.name == "KeyValueCache" &&
      (refuse == subject.options.more.end() || refuse->second == 0))
    subject.options.more["slide"] = 1;
  return subject;
}

template <class S> void check_all() {
  const Index few = std::max(Index(1), pass_count / 10);
  for (const Subject& subject : laws::subjects<S>(3, 3))
    check_memory<S>(with_fixed_room(subject), pass_count);
  for (const Subject& subject : laws::variants<S>()) check_memory<S>(with_fixed_room(subject), few);
  for (const std::string& name : fw::memory_names<S>())
    check_memory<S>(with_fixed_room({name, {64, 64}}), few);
}

}  // namespace

void check_memories() {
  Eigen::setNbThreads(1);  // Eigen's parallel products allocate
  check_all<float>();
  check_all<double>();
  Eigen::setNbThreads(0);
}
