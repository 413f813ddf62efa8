#pragma once

#include <fastweights/algorithms/scan.hpp>
#include <fastweights/algorithms/step.hpp>

#include "tokens.hpp"

/// \file
/// `Heads` of a memory type that is not in the table, such as one of fixed size. A type compiles
/// for more than a second, so sources have only a few.

namespace measure {

/// Heads with scan and step.
template <class M> class TypedHeads : public Heads {
  using S = typename M::Scalar;

 public:
  /// `with_tokens` is a memory with the same inputs and outputs.
  TypedHeads(const M& m, const fw::AnyMemory<S>& with_tokens, Index steps, Index count)
      : memory_(m),
        with_tokens_(with_tokens),
        tokens_(with_tokens, steps, count),
        states_(static_cast<std::size_t>(count), fw::initial_state(m)) {
    for (const TokenViews<S>& views : tokens_.heads) sequences_.push_back(Sequence(views));
  }

  Index count() const final { return static_cast<Index>(states_.size()); }
  std::size_t state_bytes() const final { return bytes_of(fw::detail::object(states_[0])); }
  Arrays arrays(Index head) final {
    return tokens_.arrays(head, matrix_of(fw::detail::object(state(head))));
  }
  void clear(Index head) final { set_zero(fw::detail::object(state(head))); }

  void fill() final {
    const Tokens<S> tokens(with_tokens_, length, 1);
    const Sequence used(tokens.all);
    fw::StateOf<M> state = fw::initial_state(memory_);
    fw::scan(memory_, state, used.inputs, used.queries, used.outputs);
    for (fw::StateOf<M>& each : states_) each = state;
  }
  void step() final {
    const auto signature = memory_.signature();
    const auto first = []<class Token>(const auto& views, const auto& extents) {
      return fw::detail::token_at<Token>(views, extents, 0);
    };
    for (std::size_t h = 0; h < states_.size(); ++h)
      fw::step(
          memory_, states_[h],
          first.template operator()<fw::WriteToken<M>>(sequences_[h].inputs, signature.write()),
          first.template operator()<fw::ReadToken<M>>(sequences_[h].queries, signature.read()),
          first.template operator()<fw::OutToken<M>>(sequences_[h].outputs, signature.out()));
  }
  void scan(Index head) override {
    const Sequence& s = sequences_[static_cast<std::size_t>(head)];
    clear(head);
    fw::scan(memory_, state(head), s.inputs, s.queries, s.outputs);
  }
  void chunked_scan(Index) final { throw std::logic_error("these heads have no chunked scan"); }
  void prepare_backward(Index) final { throw std::logic_error("these heads do not train"); }
  void backward(Index) final { throw std::logic_error("these heads do not train"); }

 protected:
  struct Sequence {
    fw::WriteSequence<M> inputs;
    fw::ReadSequence<M> queries;
    fw::OutSequence<M> outputs;

    explicit Sequence(const TokenViews<S>& v)
        : inputs(fw::detail::record_of<fw::WriteSequence<M>, const S>(v.inputs)),
          queries(fw::detail::record_of<fw::ReadSequence<M>, const S>(v.queries)),
          outputs(fw::detail::record_of<fw::OutSequence<M>, S>(v.outputs)) {}
  };
  fw::StateOf<M>& state(Index head) { return states_[static_cast<std::size_t>(head)]; }

  const M memory_;
  const fw::AnyMemory<S> with_tokens_;
  Tokens<S> tokens_;
  std::vector<fw::StateOf<M>> states_;
  std::vector<Sequence> sequences_;
};

}  // namespace measure
