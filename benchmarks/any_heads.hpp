#pragma once

#include "tokens.hpp"

/// \file
/// `Heads` of a memory that is chosen at run time.

namespace measure {

/// A step of all heads is one call for several streams, so that it costs one virtual call.
template <class S> class AnyHeads final : public Heads {
 public:
  AnyHeads(const fw::AnyMemory<S>& m, Index steps, Index count);

  Index count() const override { return static_cast<Index>(states_.size()); }
  std::size_t state_bytes() const override { return bytes_of(states_[0].object()); }
  Arrays arrays(Index head) override {
    return tokens_.arrays(head, matrix_of(state(head).object()));
  }
  void clear(Index head) override { set_zero(state(head).object()); }
  void fill() override;
  void step() override;
  void scan(Index head) override;
  void chunked_scan(Index head) override;
  void prepare_backward(Index head) override;
  void backward(Index head) override;

 private:
  struct BackwardPass {
    fw::AnyCheckpoints<S> checkpoints;
    std::vector<fw::AnyView<const S>> outputs;
    std::vector<fw::AnyView<S>> inputs, queries;
  };
  fw::AnyState<S>& state(Index head) { return states_[static_cast<std::size_t>(head)]; }

  const fw::AnyMemory<S> memory_;
  const Index steps_;
  Tokens<S> tokens_;
  fw::testing::AnySequences<S> gradients_;  // empty without a backward pass
  std::vector<fw::AnyState<S>> states_;
  std::vector<BackwardPass> passes_;
};

extern template class AnyHeads<float>;
extern template class AnyHeads<double>;

}  // namespace measure
