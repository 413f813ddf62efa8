#pragma once

#include <fastweights/algorithms/parallel_scan.hpp>
#include <utility>

#include "support/run.hpp"
#include "support/typed_sequences.hpp"

/// \file
/// Run for one type of memory.

namespace laws {

template <class M> class RunOf final : public Run {
 public:
  RunOf(const M& m, Sequences<M> all, fw::StateOf<M> state)
      : m_(m), all_(std::move(all)), state_(std::move(state)) {}
  std::unique_ptr<Run> copy() const override { return std::make_unique<RunOf>(*this); }

  void step(Index t) override {
    const auto [input, query, output] = tokens(m_, all_, t);
    fw::step(m_, state_, input, query, output);
  }
  void write(Index t) override { fw::write(m_, state_, std::get<0>(tokens(m_, all_, t))); }
  void read(Index t) override {
    const auto token = tokens(m_, all_, t);
    fw::read(m_, state_, std::get<1>(token), std::get<2>(token));
  }
  bool reads_first() const override { return fw::reads_first<M>(); }

  void scan() override { laws::scan(m_, state_, all_); }
  void scan(Index first, Index count) override {
    const auto signature = m_.signature();
    const auto part = [&](const auto& views, const auto& extents) {
      return fw::detail::steps(views, extents, first, count);
    };
    fw::scan(m_, state_, part(inputs(), signature.write()), part(queries(), signature.read()),
             part(targets(), signature.out()));
  }

  bool is_chunkable() const override { return fw::Chunkable<M>; }
  void chunked_scan([[maybe_unused]] Index chunk) override {
    if constexpr (fw::Chunkable<M>)
      fw::chunked_scan(m_, state_, inputs(), queries(), targets(), chunk);
  }
  bool is_mergeable() const override { return fw::Mergeable<M>; }
  void parallel_scan([[maybe_unused]] Index segments) override {
    if constexpr (fw::Mergeable<M>)
      fw::parallel_scan(m_, state_, inputs(), queries(), targets(), segments);
  }
  void apply_segments([[maybe_unused]] Index first) override {
    if constexpr (fw::Mergeable<M>) {
      auto early = m_.empty_segment(), late = m_.empty_segment();
      const Index steps = fw::detail::steps_of(inputs(), m_.signature().write());
      for (Index t = 0; t < steps; ++t)
        m_.extend(t < first ? early : late, std::get<0>(tokens(m_, all_, t)));
      m_.merge(early, late);
      m_.apply(early, state_);
    }
  }

  Values outputs() const override { return values_of(all_.outputs); }
  Values state() const override { return values_of(state_); }

  std::string name() const override { return std::string(M::name); }
  std::vector<std::string> members(Part part) const override {
    std::vector<std::string> names;
    const auto add = [&](const auto& names_of_record) {
      for (const std::string_view name : names_of_record) names.emplace_back(name);
    };
    if (part == Part::inputs) add(fw::OwnedWrites<M>::names);
    if (part == Part::queries) add(fw::OwnedReads<M>::names);
    if (part == Part::outputs) add(fw::OwnedOuts<M>::names);
    return names;
  }
  bool enlarge(Part part, std::size_t member, bool by_row) override {
    if (part == Part::inputs) return enlarge(all_.inputs, member, by_row);
    if (part == Part::queries) return enlarge(all_.queries, member, by_row);
    return enlarge(all_.outputs, member, by_row);
  }

 private:
  auto inputs() { return fw::view<fw::WriteSequence<M>>(all_.inputs); }
  auto queries() { return fw::view<fw::ReadSequence<M>>(all_.queries); }
  auto targets() { return fw::view<fw::OutSequence<M>>(all_.outputs); }

  template <class R> static bool enlarge(R& record, std::size_t member, bool by_row) {
    bool has_extra_row = false;
    std::size_t i = 0;
    fw::for_each_member(
        [&](std::string_view, auto& array) {
          using Array = std::remove_cvref_t<decltype(array)>;
          if (i++ != member) return;
          has_extra_row = by_row && Array::RowsAtCompileTime == Eigen::Dynamic;
          array.setZero(array.rows() + (has_extra_row ? 1 : 0),
                        array.cols() + (has_extra_row ? 0 : 1));
        },
        record);
    return has_extra_row;
  }

  M m_;
  Sequences<M> all_;
  fw::StateOf<M> state_;
};

/// Makes random runs of m, with positive keys if `positive`.
template <class M> MakeRun runs_of(const M& m, bool positive) {
  return [m, positive](Index steps, Index used, std::uint64_t seed) -> std::unique_ptr<Run> {
    fw::Random random(seed);
    auto all = fw::testing::random_sequences(m, steps, random, positive);
    auto state = fw::testing::random_state(m, used, random, positive);
    return std::make_unique<RunOf<M>>(m, std::move(all), std::move(state));
  };
}

}  // namespace laws
