#pragma once

#include <fastweights/math/random.hpp>
#include <fastweights/networks/builder.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Gives every dropout, and every memory that samples at random, of a state, at any depth, a seed
/// of its own, which follows from `seed`. Call it for every batch.
template <Record State> void seed_draws(State& state, std::uint64_t seed) {
  std::uint64_t number = 0;
  const auto visit = [&](const detail::Leaf* leaf, const detail::LeafPath& path) {
    if (path.name != "dropout_seed" && path.name != "draw_seed") return;
    const double drawn = uniform_at(seed, number++);
    leaf->store_integer(0,
                        1 + static_cast<std::int64_t>(drawn * static_cast<double>(max_count / 2)));
  };
  const detail::Object object = detail::object(state);
  detail::visit_leaves(&object, 1, visit);
}
/// seed_draws by the name that it had when only dropout drew.
template <Record State> void seed_dropout(State& state, std::uint64_t seed) {
  seed_draws(state, seed);
}

}  // namespace fw

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The seed of a dropout's draws: see fw::seed_draws.
struct DropoutState {
  Index dropout_seed = 0;  ///< none if 0
  static constexpr auto names = fw::names("dropout_seed");

  /// Sequence b draws from dropout_seed + b, so alone it has the same draws.
  DropoutState stream(Index b, Index /*sequences*/) const {
    return {dropout_seed == 0 ? 0 : dropout_seed + b};
  }
  /// Sequences that join draw by their new numbers, and so do those behind one that left.
  void add(const DropoutState& /*more*/) {}
  void remove(Index /*b*/, Index /*sequences*/) {}
  /// Tokens do not change it.
  void assign(Index /*b*/, Index /*sequences*/, const DropoutState& /*other*/) {}
};

/// Entries become 0 at random in train passes: see dropout().
template <class S> struct Dropout final : Operation<S> {
  static constexpr bool sees_position = true;
  double rate;  ///< the probability that an entry becomes 0

  struct OwnTrace final : OperationTrace {
    Index seed = 0;  ///< of the last train pass
  };

  explicit Dropout(double probability) : rate(probability) {}

  std::unique_ptr<StatePart> initial_state(Index) const override {
    return std::make_unique<StateOfPart<DropoutState>>(DropoutState{});
  }
  std::unique_ptr<StatePart> state_gradient(Index) const override {
    return std::make_unique<StateOfPart<NoState>>(NoState{});  // draws have none
  }
  void check_state(const Forward<S>& run) const override {
    const Index seed = run.template own_state<DropoutState>().dropout_seed;
    fw::detail::check_count(run.node.path, {"dropout_seed", seed});
    if (run.train && seed == 0)
      fw::detail::throw_invalid({run.node.path,
                                 ": a train pass without a seed; call fw::seed_dropout(state, "
                                 "seed) for every batch"});
  }
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>();
  }
  bool overwrites() const override { return true; }

  void forward(const Forward<S>& run) const override {
    auto y = run.out();
    y = run.in();
    if (!run.train) return;
    run.template own_trace<OwnTrace>().seed = run.template own_state<DropoutState>().dropout_seed;
    for_each_token(run, [&](Index column, const auto& factor) {
      for (Index i = 0; i < y.rows(); ++i) y(i, column) *= factor(i);
    });
  }
  void backward(const Backward<S>& run) const override {
    const auto dy = run.dout();
    auto dx = run.din();
    if (run.is_first()) dx.setZero();
    for_each_token(run, [&](Index column, const auto& factor) {
      for (Index i = 0; i < dy.rows(); ++i) dx(i, column) += dy(i, column) * factor(i);
    });
  }

 private:
  // Calls f(column, factor) for every token, where factor(i) is that of its row i. The draws of a
  // sequence depend on its number and on the positions of its tokens alone.
  template <class F> void for_each_token(const Forward<S>& run, const F& f) const {
    const auto seed = static_cast<std::uint64_t>(run.template own_trace<OwnTrace>().seed);
    const auto rows = static_cast<std::uint64_t>(run.node.out.rows);
    const S kept = S(1 / (1 - rate));
    for (Index b = 0; b < run.sequences(); ++b)
      for (Index t = 0; t < run.streams.steps(b); ++t) {
        const auto at = static_cast<std::uint64_t>(run.streams.position(b) + t) * rows;
        f(run.streams.first(b) + t, [&](Index i) {
          const auto n = static_cast<std::uint64_t>(i);
          return uniform_at(seed + static_cast<std::uint64_t>(b), at + n) < rate ? S(0) : kept;
        });
      }
  }
};

/// Sets entries to 0 at random in train passes, and scales the others, so that their mean stays. An
/// infer pass changes nothing.
///
///     y = m ⊙ x / (1 − rate)        m_i = 0 with probability `rate`, else 1
///
/// The draws are those of the state's seed and of the positions of the tokens, the same for any
/// split of a sequence. fw::seed_draws(state, seed) sets the seeds of all dropouts of a network;
/// call it for every batch. The state has the path `state_name`. Cost: one random number for every
/// entry, and again in a backward pass. Throws std::invalid_argument for a rate outside of [0, 1),
/// and a train pass without a seed does. Srivastava et al. 2014, JMLR 15, section 4; the scaling as
/// in PyTorch.
template <class S>
Value<S> dropout(const Value<S>& x, double rate, const std::string& state_name = "dropout") {
  if (!(rate >= 0 && rate < 1))
    fw::detail::throw_invalid({x.builder->path(state_name), ": rate is ", std::to_string(rate),
                               ", expected at least 0 and below 1"});
  return rate == 0 ? x : x.builder->add(Dropout<S>(rate), x.rows(), {x}, {}, state_name);
}

}  // namespace fw::networks
