#pragma once

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/testing/sequences.hpp>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "heads.hpp"
#include "rules.hpp"

/// \file
/// `Heads` of a memory type. These templates take long to compile, so CMakeLists.txt generates
/// sources that instantiate only a few each.

namespace measure {

/// Heads with scan and step.
template <class M> class ForwardHeads : public Heads {
 public:
  ForwardHeads(const M& m, Index steps, Index count)
      : memory_(m), heads_(static_cast<std::size_t>(count), Head(m, steps)) {}

  Index count() const final { return static_cast<Index>(heads_.size()); }
  std::size_t state_bytes() const final {
    std::size_t bytes = 0;
    fw::for_each_leaf(
        [&](const auto& leaf) {
          if constexpr (requires { leaf.data(); })
            bytes += static_cast<std::size_t>(leaf.size()) * sizeof(*leaf.data());
        },
        heads_[0].state);
    return bytes;
  }
  Arrays arrays(Index head) final {
    if constexpr (requires(Head & h) { h.state.W; }) {
      Head& h = at(head);
      const auto& inputs = h.tokens.inputs;
      Arrays all{memory_.signature().dk,
                 inputs.key.cols(),
                 inputs.key.data(),
                 inputs.value.data(),
                 nullptr,
                 nullptr,
                 h.tokens.queries.query.data(),
                 h.tokens.outputs.output.data(),
                 h.state.W.data()};
      if constexpr (requires { inputs.beta.data(); }) all.beta = inputs.beta.data();
      if constexpr (requires { inputs.decay.data(); }) all.decay = inputs.decay.data();
      return all;
    } else {
      throw std::logic_error(std::string(M::name) + ": has no matrix W to compare");
    }
  }
  void clear(Index head) final { fw::set_zero(at(head).state); }

  void fill() final {
    Head used(memory_, length);
    fw::scan(memory_, used.state, used.inputs(), used.queries(), used.outputs());
    for (Head& head : heads_) head.state = used.state;
  }
  void step() final {
    const auto signature = memory_.signature();
    const auto first = []<class Token>(const auto& views, const auto& extents) {
      return fw::detail::token_at<Token>(views, extents, 0);
    };
    for (Head& h : heads_)
      fw::step(memory_, h.state,
               first.template operator()<fw::WriteToken<M>>(h.inputs(), signature.write()),
               first.template operator()<fw::ReadToken<M>>(h.queries(), signature.read()),
               first.template operator()<fw::OutToken<M>>(h.outputs(), signature.out()));
  }
  void scan(Index head) override {
    Head& h = at(head);
    fw::set_zero(h.state);
    fw::scan(memory_, h.state, h.inputs(), h.queries(), h.outputs());
  }
  void chunked_scan(Index) override { throw std::logic_error("these heads have no chunked scan"); }
  void prepare_backward(Index) override { throw std::logic_error("these heads do not train"); }
  void backward(Index) override { throw std::logic_error("these heads do not train"); }

 protected:
  using Tokens = fw::testing::Sequences<M>;
  struct Head {
    fw::StateOf<M> state;
    Tokens tokens;

    Head(const M& m, Index steps) : state(fw::initial_state(m)), tokens(random_tokens(m, steps)) {}
    auto inputs() { return fw::view<fw::WriteSequence<M>>(tokens.inputs); }
    auto queries() { return fw::view<fw::ReadSequence<M>>(tokens.queries); }
    auto outputs() { return fw::view<fw::OutSequence<M>>(tokens.outputs); }
  };

  static Tokens random_tokens(const M& m, Index steps) {
    fw::Random random(1);
    return fw::testing::random_sequences(m, steps, random, /*positive=*/true);
  }
  Head& at(Index head) { return heads_[static_cast<std::size_t>(head)]; }

  const M memory_;

 private:
  std::vector<Head> heads_;
};

/// Heads with chunked scan and backward pass too.
template <class M> class TrainingHeads final : public ForwardHeads<M> {
  using Base = ForwardHeads<M>;

 public:
  TrainingHeads(const M& m, Index steps, Index count)
      : Base(m, steps, count), passes_(static_cast<std::size_t>(count)) {}

  void chunked_scan(Index head) override {
    if constexpr (fw::Chunkable<M>) {
      auto& h = this->at(head);
      fw::set_zero(h.state);
      fw::chunked_scan(this->memory_, h.state, h.inputs(), h.queries(), h.outputs());
    } else {
      Base::chunked_scan(head);
    }
  }
  void prepare_backward(Index head) override {
    auto& h = this->at(head);
    BackwardPass& pass = passes_[static_cast<std::size_t>(head)];
    fw::set_zero(h.state);
    fw::scan(this->memory_, h.state, h.inputs(), h.queries(), h.outputs(), pass.checkpoints);
    pass.gradients = h.tokens;
  }
  void backward(Index head) override {
    auto& h = this->at(head);
    auto& [checkpoints, gradients] = passes_[static_cast<std::size_t>(head)];
    fw::set_zero(h.state);  // the gradient of the final state
    fw::backward(this->memory_, checkpoints, h.inputs(), h.queries(),
                 fw::view<fw::OutGradSequence<M>>(gradients.outputs), h.state,
                 fw::view<fw::WriteGradSequence<M>>(gradients.inputs),
                 fw::view<fw::ReadGradSequence<M>>(gradients.queries));
  }

 private:
  struct BackwardPass {
    fw::Checkpoints<M> checkpoints;
    typename Base::Tokens gradients;
  };
  std::vector<BackwardPass> passes_;
};

/// Only memories of dynamic size are trained.
template <class Rule, class S, int D>
HeadsPointer HeadsOf<Rule, S, D>::make(Index d, Index steps, Index count) {
  using M = std::remove_cvref_t<decltype(Rule::template memory<S, D>(d))>;
  using H = std::conditional_t<D == Dynamic, TrainingHeads<M>, ForwardHeads<M>>;
  return std::make_unique<H>(Rule::template memory<S, D>(d), steps, count);
}

}  // namespace measure
