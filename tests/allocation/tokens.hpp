#pragma once

#include <string>
#include <vector>

#include "checks.hpp"
#include "support/accepted_tokens.hpp"

/// A memory by name with its state and tokens. Views of all tokens are made before anything is
/// counted.
template <class S> class Tokens {
 public:
  Tokens(const laws::Subject& subject, Index steps)
      : memory(subject.memory<S>()),
        initial(laws::first_state<S>(subject)),
        state(initial),
        all_(laws::accepted_tokens(memory, steps)) {
    for (Index t = 0; t < steps; ++t) {
      inputs_.push_back(all_.inputs.part(t, 1));
      queries_.push_back(all_.queries.part(t, 1));
      outputs_.push_back(all_.outputs.template part<S>(t, 1));
    }
  }
  Tokens(const Tokens&) = delete;  // the views are of this object

  void step(Index t) { memory.step(state, at(inputs_, t), at(queries_, t), at(outputs_, t)); }
  void checked_step(Index t) {
    memory.checked_step(state, at(inputs_, t), at(queries_, t), at(outputs_, t));
  }
  void write_and_read(Index t) {
    memory.write(state, at(inputs_, t));
    memory.read(state, at(queries_, t), at(outputs_, t));
  }
  Index count() const { return static_cast<Index>(inputs_.size()); }
  /// True if a token of it has any number of columns.
  bool has_chunks() const {
    for (const auto members : {memory.written(), memory.read_with()})
      for (const fw::SignatureMember& m : members)
        if (m.chunks) return true;
    return false;
  }

  const fw::AnyMemory<S> memory;
  const fw::AnyState<S> initial;
  fw::AnyState<S> state;

 private:
  template <class View> static const View& at(const std::vector<View>& all, Index t) {
    return all[static_cast<std::size_t>(t)];
  }

  fw::testing::AnySequences<S> all_;
  std::vector<std::vector<fw::AnyView<const S>>> inputs_, queries_;
  std::vector<std::vector<fw::AnyView<S>>> outputs_;
};

template <class S> std::string text(const laws::Subject& subject) {
  return subject.text() + (std::is_same_v<S, float> ? ", float" : ", double");
}
