#include <functional>
#include <limits>
#include <stdexcept>

#include "support/catch.hpp"
#include "support/laws.hpp"

// An output that shares memory with an input, or with another output, is refused by every call that
// takes both, and changes nothing. Numbers that lie between each other are not shared.

namespace laws {

namespace {

using fw::AnyView;
using fw::Index;
using fw::SignatureMember;
using fw::testing::AnyRecord;

template <class S> using Matrix = Eigen::Matrix<S, fw::Dynamic, fw::Dynamic>;
template <class S> using ConstViews = std::vector<AnyView<const S>>;
template <class S> using Views = std::vector<AnyView<S>>;

// Calls `run`, which must be refused with an error that names the memory and both members.
template <class S, class F>
void is_refused(const AnyMemory<S>& memory, std::string_view output, std::string_view other,
                const F& run) {
  try {
    run();
    FAIL("accepted " << output << " over " << other);
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    INFO(what);
    CHECK(what.find(memory.name()) == 0);
    CHECK(what.find(std::string(output) + " overlaps ") != std::string::npos);
    CHECK(what.find(" overlaps " + std::string(other)) != std::string::npos);
  }
}

// Room for two views that begin at the same number, with the numbers of one of them.
template <class S> class Shared {
 public:
  Shared(const Matrix<S>& input, Index rows, Index cols)
      : numbers_(Matrix<S>::Zero(std::max(input.rows(), rows), std::max(input.cols(), cols))),
        rows_(input.rows()),
        cols_(input.cols()),
        out_rows_(rows),
        out_cols_(cols) {
    numbers_.topLeftCorner(rows_, cols_) = input;
    before_ = numbers_;
  }
  AnyView<const S> input() { return numbers_.topLeftCorner(rows_, cols_); }
  AnyView<S> output() { return numbers_.topLeftCorner(out_rows_, out_cols_); }
  bool is_unchanged() const { return numbers_ == before_; }

 private:
  Matrix<S> numbers_, before_;
  Index rows_, cols_, out_rows_, out_cols_;
};

// The arguments of a call of the memory.
template <class S> struct Arguments {
  ConstViews<S> inputs, queries;
  Views<S> outputs;
};
template <class S> using Call = std::function<void(Run<S>&, const Arguments<S>&)>;

// The state of a run as the first of several, until the end of the call.
template <class S> class Streams {
 public:
  Streams(Run<S>& run, Index count)
      : run_(run), states_(static_cast<std::size_t>(count), run.state) {
    std::swap(states_[0], run_.state);
  }
  Streams(const Streams&) = delete;
  ~Streams() { std::swap(states_[0], run_.state); }
  std::span<AnyState<S>> all() { return states_; }

 private:
  Run<S>& run_;
  std::vector<AnyState<S>> states_;
};

// The calls whose outputs may be the values, for some memories.
template <class S> std::vector<Call<S>> calls_in_place(Index steps) {
  using R = Run<S>;
  using A = Arguments<S>;
  std::vector<Call<S>> all{
      [](R& r, const A& a) { r.memory.scan(r.state, a.inputs, a.queries, a.outputs); },
      [](R& r, const A& a) { r.memory.checked_scan(r.state, a.inputs, a.queries, a.outputs); }};
  if (steps > 1) return all;
  all.push_back([](R& r, const A& a) { r.memory.step(r.state, a.inputs, a.queries, a.outputs); });
  all.push_back(
      [](R& r, const A& a) { r.memory.checked_step(r.state, a.inputs, a.queries, a.outputs); });
  return all;
}

// Every other call that overwrites outputs and looks for views of the state, of `steps` tokens.
template <class S> std::vector<Call<S>> calls(const AnyMemory<S>& memory, Index steps) {
  std::vector<Call<S>> all;
  const auto add = [&](auto call) { all.push_back(call); };
  using R = Run<S>;
  using A = Arguments<S>;
  add([](R& r, const A& a) {
    Streams<S> heads(r, 1);
    r.memory.scan(heads.all(), a.inputs, a.queries, a.outputs);
  });
  if (memory.can().differentiable)
    add([](R& r, const A& a) {
      fw::AnyCheckpoints<S> checkpoints;
      r.memory.scan(r.state, a.inputs, a.queries, a.outputs, checkpoints);
    });
  if (memory.can().chunkable)
    add([](R& r, const A& a) { r.memory.chunked_scan(r.state, a.inputs, a.queries, a.outputs); });
  if (memory.can().mergeable)
    add([](R& r, const A& a) {
      r.memory.parallel_scan(r.state, a.inputs, a.queries, a.outputs, 2);
    });
  if (memory.can().shares_chunks)
    add([](R& r, const A& a) {
      const std::vector<fw::AnyViews<const S>> queries = {a.queries};
      const std::vector<fw::AnyViews<S>> outputs = {a.outputs};
      r.memory.shared_chunk(r.state, a.inputs, queries, outputs);
    });
  add([steps](R& r, const A& a) {
    Streams<S> streams(r, steps);
    r.memory.step(streams.all(), a.inputs, a.queries, a.outputs);
  });
  return all;
}

// True if a member of this size may be an output of these.
template <class S>
bool may_be_output(const AnyMemory<S>& memory, const SignatureMember& member, const Matrix<S>& x,
                   const Matrix<S>& y) {
  return memory.can().in_place && member.name == "value" && x.cols() == y.cols();
}

// Every output over every member of `part`, in every call of `calls`.
template <class S>
void refuses_over(const Run<S>& start, AnyRecord<S> fw::testing::AnySequences<S>::*part,
                  ConstViews<S> Arguments<S>::*views, const std::vector<Call<S>>& calls,
                  bool in_place = false) {
  const auto& record = start.all.*part;
  for (std::size_t i = 0; i < record.matrices.size(); ++i)
    for (std::size_t o = 0; o < start.all.outputs.matrices.size(); ++o)
      for (const Call<S>& call : calls) {
        if (record.matrices[i].size() == 0) continue;  // nothing that an output could overwrite
        Run<S> run = start;
        const auto& y = run.all.outputs.matrices[o];
        if (in_place && may_be_output(run.memory, record.members()[i], record.matrices[i], y))
          continue;
        Shared<S> shared((run.all.*part).matrices[i], y.rows(), y.cols());
        Arguments<S> arguments{run.all.inputs.views(), run.all.queries.views(),
                               run.all.outputs.template views<S>()};
        (arguments.*views)[i] = shared.input();
        arguments.outputs[o] = shared.output();
        is_refused(run.memory, run.all.outputs.members()[o].name, record.members()[i].name,
                   [&] { call(run, arguments); });
        CHECK(shared.is_unchanged());
        CHECK(run.state == start.state);
      }
}

}  // namespace

template <class S> void overlaps_are_refused(const Runs<S>& runs) {
  using All = fw::testing::AnySequences<S>;
  for (const Index steps : {1, 6}) {
    const Run<S> start = runs(steps, 3, 21);
    const auto all = calls(start.memory, steps), in_place = calls_in_place<S>(steps);
    std::vector<Call<S>> read;
    if (steps == 1)
      read.push_back(
          [](Run<S>& r, const Arguments<S>& a) { r.memory.read(r.state, a.queries, a.outputs); });
    refuses_over(start, &All::inputs, &Arguments<S>::inputs, all);
    refuses_over(start, &All::inputs, &Arguments<S>::inputs, in_place, true);
    for (const auto& each : {all, in_place, read})
      refuses_over(start, &All::queries, &Arguments<S>::queries, each);
  }
}

template <class S> void outputs_may_be_values(const Runs<S>& runs, Index steps) {
  const Run<S> apart = runs(steps, 3, 8);
  if (!apart.memory.can().in_place) return;
  const auto& members = apart.all.inputs.members();
  for (std::size_t i = 0; i < members.size(); ++i)
    for (const Call<S>& call : calls_in_place<S>(steps)) {
      Run<S> start = apart, run = apart;
      auto& value = run.all.inputs.matrices[i];
      auto& y = start.all.outputs.matrices[0];
      if (!may_be_output(run.memory, members[i], value, y)) continue;
      call(start, {start.all.inputs.views(), start.all.queries.views(),
                   start.all.outputs.template views<S>()});
      call(run, {run.all.inputs.views(), run.all.queries.views(), {AnyView<S>(value)}});
      INFO(run.memory.name() << ", " << steps << " tokens");
      CHECK(value == y);
      CHECK(run.state == start.state);
    }
}

template <class S> void outputs_may_be_values(const Runs<S>& runs) {
  for (const Index steps : {1, 2, 70}) outputs_may_be_values(runs, steps);
}

namespace {

// One member of what backward reads or overwrites.
template <class S> struct Gradient {
  std::string name;
  AnyView<S>* overwritten = nullptr;  // null for what is only read
  AnyView<const S>* read = nullptr;
  Matrix<S>* numbers = nullptr;
};

template <class S> struct BackwardRun {
  explicit BackwardRun(const Run<S>& start) : run(start) {
    auto scanned = run;
    run.memory.scan(scanned.state, inputs, queries, run.all.outputs.template views<S>(),
                    checkpoints);
    add("", run.all.inputs, inputs);
    add("", run.all.queries, queries);
    add("the gradient of ", run.all.outputs, dy);
    add("the gradient of ", d.inputs, dinputs);
    add("the gradient of ", d.queries, dqueries);
  }
  template <class V>
  void add(const std::string& prefix, AnyRecord<S>& record, std::vector<AnyView<V>>& views) {
    for (std::size_t i = 0; i < views.size(); ++i) {
      Gradient<S> g{prefix + std::string(record.members()[i].name)};
      if constexpr (std::is_const_v<V>)
        g.read = &views[i];
      else
        g.overwritten = &views[i];
      g.numbers = &record.matrices[i];
      members.push_back(g);
    }
  }
  void backward() { run.memory.backward(checkpoints, inputs, queries, dy, ds, dinputs, dqueries); }

  Run<S> run;
  fw::testing::AnySequences<S> d = run.all;
  ConstViews<S> inputs = run.all.inputs.views(), queries = run.all.queries.views(),
                dy = run.all.outputs.views();
  Views<S> dinputs = d.inputs.template views<S>(), dqueries = d.queries.template views<S>();
  AnyState<S> ds = run.memory.zero_gradient();
  fw::AnyCheckpoints<S> checkpoints;
  std::vector<Gradient<S>> members;
};

// Gradient i over member j.
template <class S> void refuses_gradient_over(BackwardRun<S>& b, std::size_t i, std::size_t j) {
  const Gradient<S>&g = b.members[i], &other = b.members[j];
  Shared<S> shared(*other.numbers, g.numbers->rows(), g.numbers->cols());
  const AnyView<S> mine = *g.overwritten;
  *g.overwritten = shared.output();
  const AnyState<S> before = b.ds;
  // The later of two gradients is the one that overlaps.
  const std::string& first = other.overwritten && j > i ? other.name : g.name;
  const std::string& second = other.overwritten && j > i ? g.name : other.name;
  if (other.overwritten) {
    const AnyView<S> its = *other.overwritten;
    Shared<S>& room = shared;
    *other.overwritten =
        AnyView<S>(const_cast<S*>(room.input().data), its.rows, its.cols, room.input().col_stride);
    is_refused(b.run.memory, first, second, [&] { b.backward(); });
    *other.overwritten = its;
  } else {
    const AnyView<const S> its = *other.read;
    *other.read = shared.input();
    is_refused(b.run.memory, first, second, [&] { b.backward(); });
    *other.read = its;
  }
  *g.overwritten = mine;
  CHECK(shared.is_unchanged());
  CHECK(b.ds == before);
}

// A matrix of a state, with its name in errors.
struct StateMember {
  std::string name;
  fw::detail::Leaf leaf;
  template <class S> bool has_room_for(const AnyView<S>& view) const {
    return leaf.scalar == fw::detail::scalar_kind<std::remove_const_t<S>>() && view.rows > 0 &&
           view.cols > 0 && view.rows * view.cols <= leaf.size();
  }
  // A view of the first numbers of the matrix.
  template <class S> AnyView<S> like(const AnyView<S>& view) const {
    return AnyView<S>(static_cast<S*>(leaf.data), view.rows, view.cols, view.rows);
  }
};
template <class S>
std::vector<StateMember> members_of(const AnyState<S>& state, const std::string& prefix) {
  std::vector<StateMember> all;
  const fw::detail::Object object = state.object();
  fw::detail::visit_leaves(&object, 1,
                           [&](const fw::detail::Leaf* leaf, const fw::detail::LeafPath& path) {
                             all.push_back({prefix + std::string(path.name), *leaf});
                           });
  return all;
}

// Views of the state in place of view i of one of the records, in one call.
template <class S, class V>
void refuses_state_as(const Run<S>& start, std::vector<AnyView<V>> Arguments<S>::*views,
                      std::size_t i, std::string_view name, const Call<S>& call) {
  const std::size_t members = members_of(start.state, "").size();
  for (std::size_t m = 0; m < members; ++m) {
    Run<S> run = start;
    Arguments<S> arguments{run.all.inputs.views(), run.all.queries.views(),
                           run.all.outputs.template views<S>()};
    AnyView<V>& view = (arguments.*views)[i];
    const StateMember member = members_of(run.state, "the state's ")[m];
    if (!member.has_room_for(view)) continue;
    view = member.like(view);
    const auto refused = [&](std::string_view first, std::string_view second) {
      is_refused(run.memory, first, second, [&] { call(run, arguments); });
    };
    if constexpr (std::is_const_v<V>)
      refused(member.name, name);
    else
      refused(name, member.name);
    CHECK(run.state == start.state);
  }
}

// The gradient of the state in place of view i of a backward pass.
template <class S> void refuses_state_gradient_as(BackwardRun<S>& b, std::size_t i) {
  const AnyState<S> before = b.ds;
  for (const StateMember& member : members_of(b.ds, "the gradient of the state's ")) {
    Gradient<S>& g = b.members[i];
    const auto replaced = [&](auto& view, const std::string& first, const std::string& second) {
      const auto its = view;
      if (!member.has_room_for(its)) return;
      view = member.like(its);
      is_refused(b.run.memory, first, second, [&] { b.backward(); });
      view = its;
    };
    if (g.overwritten)
      replaced(*g.overwritten, g.name, member.name);
    else
      replaced(*g.read, member.name, g.name);
    CHECK(b.ds == before);
  }
}

}  // namespace

template <class S> void views_of_the_state_are_refused(const Runs<S>& runs) {
  for (const Index steps : {1, 6}) {
    const Run<S> start = runs(steps, 3, 24);
    for (const Call<S>& call : calls(start.memory, steps)) {
      const auto each = [&](const AnyRecord<S>& record, auto views) {
        for (std::size_t i = 0; i < record.members().size(); ++i)
          refuses_state_as<S>(start, views, i, record.members()[i].name, call);
      };
      each(start.all.inputs, &Arguments<S>::inputs);
      each(start.all.queries, &Arguments<S>::queries);
      each(start.all.outputs, &Arguments<S>::outputs);
    }
  }
  const Run<S> start = runs(6, 3, 25);
  if (!start.memory.can().differentiable) return;
  BackwardRun<S> b(start);
  for (std::size_t i = 0; i < b.members.size(); ++i) refuses_state_gradient_as(b, i);
}

template <class S> void gradient_overlaps_are_refused(const Runs<S>& runs) {
  const Run<S> start = runs(6, 3, 22);
  if (!start.memory.can().differentiable) return;
  BackwardRun<S> b(start);
  for (std::size_t i = 0; i < b.members.size(); ++i)
    for (std::size_t j = 0; j < b.members.size(); ++j)
      if (i != j && b.members[i].overwritten && b.members[i].numbers->size() > 0 &&
          b.members[j].numbers->size() > 0)
        refuses_gradient_over(b, i, j);
}

template <class S> void interleaved_numbers_are_apart(const Runs<S>& runs) {
  const Run<S> start = runs(13, 3, 23);
  Run<S> separate = start, stacked = start;
  separate.scan();
  // All members are rows of one matrix, next to each other, if they have one column a token.
  Index rows = 0;
  const auto for_each_matrix = [&](auto&& f) {
    for (auto* record : {&stacked.all.inputs, &stacked.all.queries, &stacked.all.outputs})
      for (auto& matrix : record->matrices)
        if (matrix.cols() == 13) f(matrix);
  };
  for_each_matrix([&](const Matrix<S>& m) { rows += m.rows(); });
  Matrix<S> all(rows, 13);
  Index first = 0;
  ConstViews<S> inputs = stacked.all.inputs.views(), queries = stacked.all.queries.views();
  Views<S> outputs = stacked.all.outputs.template views<S>();
  const auto stack = [&](AnyRecord<S>& record, auto& views) {
    for (std::size_t i = 0; i < views.size(); ++i) {
      const Matrix<S>& m = record.matrices[i];
      if (m.cols() != 13) continue;
      all.middleRows(first, m.rows()) = m;
      views[i] = all.middleRows(first, m.rows());
      first += m.rows();
    }
  };
  stack(stacked.all.inputs, inputs);
  stack(stacked.all.queries, queries);
  stack(stacked.all.outputs, outputs);
  stacked.memory.scan(stacked.state, inputs, queries, outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Matrix<S>& y = stacked.all.outputs.matrices[i];
    y = Eigen::Map<const Matrix<S>, 0, Eigen::OuterStride<>>(
        outputs[i].data, y.rows(), y.cols(), Eigen::OuterStride<>(outputs[i].col_stride));
  }
  // Feature maps take the exponential in vectors that begin elsewhere.
  const double tolerance = 64 * double(std::numeric_limits<S>::epsilon());
  CHECK(difference(stacked.all.outputs, separate.all.outputs) <= tolerance);
  CHECK(difference(stacked.state, separate.state) <= tolerance);
}

#define FASTWEIGHTS_LAWS(S)                                     \
  template void overlaps_are_refused(const Runs<S>&);           \
  template void outputs_may_be_values(const Runs<S>&);          \
  template void views_of_the_state_are_refused(const Runs<S>&); \
  template void gradient_overlaps_are_refused(const Runs<S>&);  \
  template void interleaved_numbers_are_apart(const Runs<S>&);
FASTWEIGHTS_LAWS(float)
FASTWEIGHTS_LAWS(double)

}  // namespace laws
