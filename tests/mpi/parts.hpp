#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fastweights/mpi/backward.hpp>
#include <fastweights/testing/sequences.hpp>
#include <limits>
#include <string>
#include <vector>

namespace mpi_test {

using fw::Index;

/// max|a − b| / max|b| over all numbers of two records.
template <class R> double difference(const R& a, const R& b) {
  double largest = 0, apart = 0;
  const std::array objects{fw::detail::object(a), fw::detail::object(b)};
  fw::detail::visit_leaves(objects.data(), 2, [&](const fw::detail::Leaf* leaves, const auto&) {
    if (!leaves->is_array) {
      std::int64_t i = 0, j = 0;
      if (leaves[0].load_integer(0, i) && leaves[1].load_integer(0, j) && i != j)
        apart = std::numeric_limits<double>::infinity();
      return;
    }
    if (leaves[0].cols != leaves[1].cols) {
      apart = std::numeric_limits<double>::infinity();
      return;
    }
    const auto x = leaves[0].template entries<double>(), y = leaves[1].template entries<double>();
    for (Index i = 0; i < x.size(); ++i) {
      largest = std::max(largest, std::abs(y[i]));
      const double distance = std::abs(x[i] - y[i]);
      apart = std::isfinite(distance) ? std::max(apart, distance)
                                      : std::numeric_limits<double>::infinity();
    }
  });
  return apart == 0 ? 0 : apart / largest;
}

/// A sequence of some heads in parts of 0 to 8 tokens, one a rank. Every rank has all of it.
template <class M> class Parts {
 public:
  using State = fw::StateOf<M>;
  using Sequences = fw::testing::Sequences<M>;
  using Method = fw::mpi::Method;
  static constexpr Index heads = 3;

  Parts(const M& m, bool positive, MPI_Comm comm) : m_(m), comm_(comm), ranks_(comm) {
    fw::Random random(5);
    starts_ = {0};
    for (int r = 0; r < ranks_.size(); ++r)
      starts_.push_back(starts_.back() + static_cast<Index>(random.below(9)));
    if (ranks_.size() > 3) starts_[2] = starts_[1];
    for (Index h = 0; h < heads; ++h) {
      tokens_.push_back(fw::testing::random_sequences(m, starts_.back(), random, positive));
      gradients_.push_back(fw::testing::random_sequences(m, starts_.back(), random, positive));
      fw::for_each_leaf([&](auto& array) { random.fill(array); }, gradients_.back().outputs);
      initial_.push_back(fw::testing::random_state(m, 3, random, positive));
      dfinal_.push_back(fw::testing::random_state(m, 3, random, positive));
    }
  }

  const fw::mpi::Ranks& ranks() const { return ranks_; }
  static std::vector<Method> methods() {
    if (fw::Mergeable<M>) return {Method::chain, Method::segments};
    return {Method::chain};
  }
  /// The memory's state gets larger, so that it is not scanned by heads.
  bool grows() const { return fw::detail::state_grows(m_); }
  /// For scans without checkpoints.
  std::vector<Method> scan_methods() const {
    auto all = methods();
    if (!grows()) all.push_back(Method::heads);
    return all;
  }

  /// Between mpi::scan and the parts in one process, of outputs and states of this rank.
  double scan_difference(Method method) {
    auto states = of_rank(0, initial_);
    Sequences mine = joined(tokens_);
    fw::mpi::scan(m_, std::span(states), inputs(mine), queries(mine), outputs(mine), comm_, method);
    double worst = 0;
    for (Index h = 0; h < heads; ++h) {
      auto expected = scan_parts(h, method);
      worst = std::max({worst, difference(states[at(h)], expected.state),
                        difference(head_of(mine, h).outputs, expected.part.outputs)});
    }
    return worst;
  }

  /// The difference of gradients.
  double backward_difference(Method method) {
    auto states = of_rank(0, initial_), ds = of_rank(ranks_.size() - 1, dfinal_);
    Sequences mine = joined(tokens_), gradients = joined(gradients_);
    std::vector<fw::Checkpoints<M>> checkpoints(at(heads));
    fw::mpi::scan(m_, std::span(states), inputs(mine), queries(mine), outputs(mine),
                  std::span(checkpoints), comm_, method);
    fw::mpi::backward(m_, std::span(checkpoints), inputs(mine), queries(mine), dy(gradients),
                      std::span(ds), dinputs(gradients), dqueries(gradients), comm_);
    double worst = 0;
    for (Index h = 0; h < heads; ++h) {
      auto expected = backward_parts(h, method);
      worst = std::max({worst, difference(ds[at(h)], expected.state),
                        difference(head_of(gradients, h), expected.part)});
    }
    return worst;
  }

  /// Between the parts and one scan and backward pass over all tokens: the last gradients and the
  /// final state.
  double difference_without_parts() {
    double worst = 0;
    for (Index h = 0; h < heads; ++h) {
      Sequences all = tokens_[at(h)], gradients = gradients_[at(h)];
      State state = initial_[at(h)], ds = dfinal_[at(h)];
      fw::Checkpoints<M> checkpoints;
      fw::scan(m_, state, inputs(all), queries(all), outputs(all), checkpoints);
      fw::backward(m_, checkpoints, inputs(all), queries(all), dy(gradients), ds,
                   dinputs(gradients), dqueries(gradients));
      const auto parts = backward_parts(h, Method::chain);
      worst = std::max({worst, difference(part_of(gradients, ranks_.rank()), parts.part)});
      if (ranks_.is_first()) worst = std::max(worst, difference(parts.state, ds));
      for (const Method method : methods()) {
        const auto scanned = scan_parts(h, method);
        worst =
            std::max(worst, difference(scanned.part.outputs, part_of(all, ranks_.rank()).outputs));
        if (ranks_.is_last()) worst = std::max(worst, difference(scanned.state, state));
      }
    }
    return worst;
  }

 private:
  /// The right results of this rank for a head.
  struct Expected {
    State state;
    Sequences part;
  };

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  static auto inputs(Sequences& s) { return fw::view<fw::WriteSequence<M>>(s.inputs); }
  static auto queries(Sequences& s) { return fw::view<fw::ReadSequence<M>>(s.queries); }
  static auto outputs(Sequences& s) { return fw::view<fw::OutSequence<M>>(s.outputs); }
  static auto dinputs(Sequences& s) { return fw::view<fw::WriteGradSequence<M>>(s.inputs); }
  static auto dqueries(Sequences& s) { return fw::view<fw::ReadGradSequence<M>>(s.queries); }
  static auto dy(Sequences& s) { return fw::view<fw::OutGradSequence<M>>(s.outputs); }

  Index count(Index rank) const { return starts_[at(rank) + 1] - starts_[at(rank)]; }

  // The given states on one rank; on the others states that must not matter.
  std::vector<State> of_rank(int rank, const std::vector<State>& states) const {
    if (ranks_.rank() == rank) return states;
    std::vector<State> others(states.size(), fw::initial_state(m_));
    for (State& state : others)
      fw::for_each_leaf(
          []<class T>(T& leaf) {
            if constexpr (fw::detail::is_array<T>) leaf.setConstant(std::nan(""));
          },
          state);
    return others;
  }

  // Calls f(array, tokens' columns, same array of each of the others) for all arrays.
  template <class F, class... All>
  void for_each_array(const F& f, Sequences& s, All&... all) const {
    const auto visit = [&](const auto& extents, auto& record, auto&... records) {
      fw::for_each_member([&](std::string_view, auto& array, const fw::MemberExtent& e,
                              auto&... others) { f(array, e.width, others...); },
                          record, extents, records...);
    };
    visit(m_.signature().write(), s.inputs, all.inputs...);
    visit(m_.signature().read(), s.queries, all.queries...);
    visit(m_.signature().out(), s.outputs, all.outputs...);
  }
  // Tokens first … first + count − 1.
  Sequences tokens(const Sequences& all, Index first, Index count) const {
    Sequences part = all;
    for_each_array(
        [&](auto& array, Index width) {
          array = array.middleCols(first * width, count * width).eval();
        },
        part);
    return part;
  }
  Sequences part_of(const Sequences& all, Index rank) const {
    return tokens(all, starts_[at(rank)], count(rank));
  }
  Sequences head_of(const Sequences& mine, Index h) const {
    return tokens(mine, h * count(ranks_.rank()), count(ranks_.rank()));
  }
  // This rank's part of all heads, one behind the other.
  Sequences joined(const std::vector<Sequences>& all) const {
    const Index steps = count(ranks_.rank());
    Sequences sum = part_of(all[0], ranks_.rank());
    for_each_array(
        [&](auto& array, Index width) { array.resize(array.rows(), heads * steps * width); }, sum);
    for (Index h = 0; h < heads; ++h) {
      const Sequences part = part_of(all[at(h)], ranks_.rank());
      for_each_array(
          [&](auto& to, Index width, const auto& from) {
            to.middleCols(h * steps * width, steps * width) = from;
          },
          sum, part);
    }
    return sum;
  }

  Expected scan_parts(Index h, Method method) const {
    Expected mine{initial_[at(h)], {}};
    State before = initial_[at(h)];
    for (Index r = 0; r < ranks_.size(); ++r) {
      Sequences part = part_of(tokens_[at(h)], r);
      State after = before;
      fw::scan(m_, after, inputs(part), queries(part), outputs(part));
      if (r == ranks_.rank()) mine = {after, part};
      before = method == Method::segments && r > 0 ? applied(part, before) : after;
    }
    return mine;
  }
  State applied(Sequences& part, State before) const {
    if constexpr (fw::Mergeable<M>) {
      auto segment = m_.empty_segment();
      fw::detail::extend(m_, segment, inputs(part),
                         fw::detail::steps_of(inputs(part), m_.signature().write()));
      m_.apply(segment, before);
    }
    return before;
  }

  Expected backward_parts(Index h, Method method) const {
    std::vector<fw::Checkpoints<M>> checkpoints(at(ranks_.size()));
    State before = initial_[at(h)], ds = dfinal_[at(h)];
    for (Index r = 0; r < ranks_.size(); ++r) {
      Sequences part = part_of(tokens_[at(h)], r);
      State after = before;
      fw::scan(m_, after, inputs(part), queries(part), outputs(part), checkpoints[at(r)]);
      before = method == Method::segments && r > 0 ? applied(part, before) : after;
    }
    Expected mine;
    for (Index r = ranks_.size() - 1; r >= ranks_.rank(); --r) {
      Sequences part = part_of(tokens_[at(h)], r), gradients = part_of(gradients_[at(h)], r);
      fw::backward(m_, checkpoints[at(r)], inputs(part), queries(part), dy(gradients), ds,
                   dinputs(gradients), dqueries(gradients));
      mine = {ds, gradients};
    }
    return mine;
  }

  M m_;
  MPI_Comm comm_;
  fw::mpi::Ranks ranks_;
  std::vector<Index> starts_;  // the first token of every rank, and the number of all
  std::vector<Sequences> tokens_, gradients_;
  std::vector<State> initial_, dfinal_;
};

/// Counts a failure unless it holds.
void expect(bool holds, const char* what);

/// The largest of all ranks.
double largest(double mine);

/// Prints a line for a memory.
template <class M> void check_memory(const M& m, bool positive = false) {
  Parts<M> parts(m, positive, MPI_COMM_WORLD);
  double scan = 0, backward = 0;
  for (const auto method : parts.scan_methods())
    scan = std::max(scan, largest(parts.scan_difference(method)));
  for (const auto method : parts.methods())
    backward = std::max(backward, largest(parts.backward_difference(method)));
  const double whole = largest(parts.difference_without_parts());
  if (parts.ranks().is_first())
    std::printf("mpi %-24s %d ranks: scan %g, backward %g; without parts %.1e\n",
                std::string(M::name).c_str(), parts.ranks().size(), scan, backward, whole);
  expect(scan == 0 && backward == 0, "the same bits as in one process");
  expect(whole <= 1e-12, "the same as without parts");
}

inline const fw::Sizes<> sizes{.key_size = 5, .value_size = 3};

}  // namespace mpi_test
