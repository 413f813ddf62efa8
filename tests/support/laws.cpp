#include "support/laws.hpp"

#include <fastweights/testing/any_gradient_check.hpp>
#include <limits>
#include <stdexcept>

#include "support/catch.hpp"

namespace laws {

template <class S> Runs<S> runs_of(const Subject& subject) {
  return [subject](Index steps, Index used, std::uint64_t seed) {
    return Run<S>(subject, steps, used, seed);
  };
}
template <class S> Runs<S> runs_of(const AnyMemory<S>& memory, bool positive) {
  AnyState<S> first = memory.initial_state();
  if constexpr (std::is_same_v<S, double>) first = first_state(memory);
  return [memory, first, positive](Index steps, Index used, std::uint64_t seed) {
    return Run<S>(memory, first, positive, steps, used, seed);
  };
}

template <class S> void step_is_write_and_read(const Runs<S>& runs) {
  constexpr Index length = 5;
  Run<S> stepped = runs(length, 4, 3), separate = stepped;
  const bool reads_first = stepped.memory.can().reads_first;
  for (Index t = 0; t < length; ++t) {
    stepped.step(t);
    if (reads_first) separate.read(t);
    separate.write(t);
    if (!reads_first) separate.read(t);
  }
  // Not to the last bit: a kernel reads the token's own write and the old state separately.
  CHECK(difference(stepped.all.outputs, separate.all.outputs) <= 1e-14);
  CHECK(difference(stepped.state, separate.state) <= 1e-14);
}

template <class S> void scan_is_steps(const Runs<S>& runs) {
  constexpr Index length = 13;
  const Run<S> start = runs(length, 6, 4);
  Run<S> by_steps = start;
  for (Index t = 0; t < length; ++t) by_steps.step(t);
  for (Index split = 0; split <= length; ++split) {
    Run<S> scanned = start;
    scanned.scan(0, split);
    scanned.scan(split, length - split);
    CHECK(difference(scanned.all.outputs, by_steps.all.outputs) <= 1e-13);
    CHECK(difference(scanned.state, by_steps.state) <= 1e-13);
  }
}

template <class S> void chunked_is_recurrent(const Runs<S>& runs) {
  const Run<S> start = runs(100, 6, 5);
  if (!start.memory.can().chunkable) return;
  Run<S> recurrent = start;
  recurrent.scan();
  for (const Index chunk : {1, 3, 20, 63, 64, 100, 200}) {
    Run<S> run = start;
    run.memory.chunked_scan(run.state, run.all.inputs.views(), run.all.queries.views(),
                            run.all.outputs.template views<S>(), chunk);
    CHECK(difference(run.all.outputs, recurrent.all.outputs) <= 1e-12);
    CHECK(difference(run.state, recurrent.state) <= 1e-12);
  }
}

template <class S> void merged_is_recurrent(const Runs<S>& runs) {
  const Run<S> start = runs(23, 6, 6);
  const auto& memory = start.memory;
  if (!memory.can().mergeable) return;
  Run<S> recurrent = start;
  recurrent.scan();
  for (const Index segments : {Index{1}, Index{2}, Index{3}, Index{7}, Index{23}, Index{40},
                               std::numeric_limits<Index>::max()}) {
    Run<S> run = start;
    memory.parallel_scan(run.state, run.all.inputs.views(), run.all.queries.views(),
                         run.all.outputs.template views<S>(), segments);
    const double tolerance = segments == 1 ? 0 : 1e-12;  // one piece is a scan
    CHECK(difference(run.all.outputs, recurrent.all.outputs) <= tolerance);
    CHECK(difference(run.state, recurrent.state) <= tolerance);
  }
  Run<S> run = start;
  CHECK_THROWS_AS(memory.parallel_scan(run.state, run.all.inputs.views(), run.all.queries.views(),
                                       run.all.outputs.template views<S>(), 0),
                  std::invalid_argument);
  auto early = memory.empty_segment(), late = memory.empty_segment();
  for (Index t = 0; t < 23; ++t) memory.extend(t < 10 ? early : late, run.input(t));
  auto itself = early, copied = early;
  memory.merge(itself, itself);
  memory.merge(copied, early);
  Run<S> twice = start, expected = start;
  memory.apply(itself, twice.state);
  memory.apply(copied, expected.state);
  CHECK(difference(twice.state, expected.state) == 0);
  memory.merge(early, late);
  memory.apply(early, run.state);
  CHECK(difference(run.state, recurrent.state) <= 1e-12);
}

template <class S> void state_is_a_value(const Runs<S>& runs) {
  Run<S> run = runs(9, 6, 7);
  const Run<S> snapshot = run;
  run.scan();
  Run<S> again = snapshot;
  CHECK(again.state == snapshot.state);
  again.scan();
  CHECK(again.state == run.state);
  CHECK(difference(again.all.outputs, run.all.outputs) == 0);
  again.state = snapshot.state;
  CHECK(again.state == snapshot.state);
}

namespace {

// Adds a row or a column of zeros to one member of a record, scans, and expects an error that names
// the memory, and the member if it has a row more.
template <class S>
void refuses(const Run<S>& start, fw::testing::AnyRecord<S> fw::testing::AnySequences<S>::*part,
             std::size_t member, bool by_row) {
  Run<S> wrong = start;
  auto& record = wrong.all.*part;
  auto& matrix = record.matrices[member];
  matrix.setZero(matrix.rows() + (by_row ? 1 : 0), matrix.cols() + (by_row ? 0 : 1));
  const std::string name(record.members()[member].name);
  try {
    // The first input determines the length of the sequence. If that input is longer, the error
    // names another member.
    wrong.scan();
    FAIL("accepted a wrong " << name);
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    CHECK(what.find(start.memory.name()) == 0);
    CHECK(what.find("expects") != std::string::npos);
    if (by_row) CHECK(what.find(name) != std::string::npos);
  }
  CHECK(wrong.state == start.state);
}

}  // namespace

template <class S> void wrong_sizes_are_refused(const Runs<S>& runs) {
  using All = fw::testing::AnySequences<S>;
  const Run<S> start = runs(4, 3, 11);
  for (const auto part : {&All::inputs, &All::queries, &All::outputs})
    for (std::size_t i = 0; i < (start.all.*part).matrices.size(); ++i)
      for (const bool by_row : {true, false}) refuses(start, part, i, by_row);
}

void float_follows_double(const Runs<float>& rounded, const Runs<double>& exact, double tolerance) {
  auto a = rounded(50, 0, 10);
  auto b = exact(50, 0, 10);
  a.scan();
  b.scan();
  CHECK(difference(a.all.outputs, b.all.outputs) <= tolerance);
}

void all(const AnyMemory<double>& memory, bool positive) {
  const auto runs = runs_of(memory, positive);
  step_is_write_and_read(runs);
  scan_is_steps(runs);
  chunked_is_recurrent(runs);
  merged_is_recurrent(runs);
  state_is_a_value(runs);
  wrong_sizes_are_refused(runs);
}

namespace {

using Record = fw::testing::AnyRecord<double>;

struct Gradients {
  Record inputs, queries;
  fw::AnyState<double> state;
};

// A backward pass over a random sequence from a state that tokens have changed.
struct Pass {
  AnyMemory<double> m;
  fw::testing::AnySequences<double> all, d;
  fw::AnyState<double> initial, ds;
  fw::AnyCheckpoints<double> checkpoints;

  Pass(const AnyMemory<double>& memory, Index steps, bool positive) : m(memory) {
    fw::Random random(12);
    d = all = fw::testing::random_sequences(m, steps, random, positive);
    for (auto* record : {&d.inputs, &d.queries})
      for (auto& matrix : record->matrices) matrix.setZero();
    for (auto& matrix : d.outputs.matrices) random.fill(matrix, 1.0);
    initial = m.initial_state();
    ds = Run<double>(m, initial, positive, 0, 5, 4).state;
    // The second scan finds what the first one left in the checkpoints.
    for (fw::AnyState<double> state : {ds, initial})
      m.scan(state, all.inputs.views(), all.queries.views(), all.outputs.views<double>(),
             checkpoints);
  }
  void backward() {
    m.backward(checkpoints, all.inputs.views(), all.queries.views(), d.outputs.views(), ds,
               d.inputs.views<double>(), d.queries.views<double>());
  }
  void backward_from_initial() {
    m.backward(initial, all.inputs.views(), all.queries.views(), d.outputs.views(), ds,
               d.inputs.views<double>(), d.queries.views<double>());
  }
};

Gradients random_gradients(const AnyMemory<double>& m, Index steps, bool positive) {
  Pass pass(m, steps, positive);
  pass.backward();
  return {pass.d.inputs, pass.d.queries, pass.ds};
}

using Sequences = fw::testing::AnySequences<double>;

// Adds a row or a column to one input, query or gradient, and expects an error that leaves all
// gradients unchanged.
void backward_refuses(const Pass& start, Sequences Pass::*whose, Record Sequences::*part,
                      std::size_t member, bool by_row) {
  for (const bool from_initial : {false, true}) {
    Pass wrong = start;
    auto& matrix = (wrong.*whose.*part).matrices[member];
    matrix.setZero(matrix.rows() + (by_row ? 1 : 0), matrix.cols() + (by_row ? 0 : 1));
    const Pass before = wrong;
    CHECK_THROWS_AS(from_initial ? wrong.backward_from_initial() : wrong.backward(),
                    std::invalid_argument);
    CHECK(wrong.ds == before.ds);
    CHECK(difference(wrong.d.inputs, before.d.inputs) == 0);
    CHECK(difference(wrong.d.queries, before.d.queries) == 0);
  }
}

}  // namespace

void fixed_is_dynamic(const AnyMemory<double>& fixed, const AnyMemory<double>& dynamic,
                      bool positive) {
  INFO(fixed.name());
  laws::all(fixed, positive);
  Run<double> a(fixed, fixed.initial_state(), positive, 20, 0, 12), stepped = a;
  Run<double> b(dynamic, dynamic.initial_state(), positive, 20, 0, 12);
  a.scan();
  b.scan();
  CHECK(difference(a.all.outputs, b.all.outputs) <= 1e-13);
  CHECK(difference(a.state, b.state) <= 1e-13);
  for (Index t = 0; t < 20; ++t) stepped.step(t);
  CHECK(difference(stepped.all.outputs, b.all.outputs) <= 1e-13);
  CHECK(difference(stepped.state, b.state) <= 1e-13);
  CHECK(fixed.can().differentiable == dynamic.can().differentiable);
  if (!fixed.can().differentiable) return;
  const Gradients of_fixed = random_gradients(fixed, 20, positive),
                  of_dynamic = random_gradients(dynamic, 20, positive);
  CHECK(difference(of_fixed.inputs, of_dynamic.inputs) <= 1e-12);
  CHECK(difference(of_fixed.queries, of_dynamic.queries) <= 1e-12);
  CHECK(difference(of_fixed.state, of_dynamic.state) <= 1e-12);
}

void gradients_are_exact(const AnyMemory<double>& memory, const AnyMemory<Complex>& in_complex,
                         Index steps, bool positive) {
  const auto error =
      fw::testing::gradient_error(memory, in_complex, first_state(memory), steps, 8, positive);
  INFO("worst in " << error.where);
  CHECK(error.worst <= 1e-10);
}

void gradients_of_reads_are_exact(const AnyMemory<double>& memory,
                                  const AnyMemory<Complex>& in_complex, bool positive) {
  namespace check = fw::testing::detail;
  using fw::detail::object;
  AnyState<double> state = first_state(memory);
  if (!memory.can().reads_after_writes) {
    AnyState<double> ds = state;
    CHECK_THROWS_AS(memory.reads_backward(state, {}, {}, ds, {}), std::invalid_argument);
    return;
  }
  constexpr Index steps = 4;
  fw::Random random(8);
  Sequences all = fw::testing::random_sequences(memory, steps, random, positive), d = all;
  fw::testing::scan(memory, state, all);
  const AnyState<double> dlater = state;  // the gradient of what else is done with the state
  AnyState<double> ds = dlater;
  check::fill_normal(object(d.outputs), random);
  for (auto& each : d.queries.matrices) each.setZero();
  memory.reads_backward(state, all.queries.views(), d.outputs.views(), ds,
                        d.queries.views<double>());

  Sequences wrong = d;
  wrong.outputs.matrices[0].conservativeResize(wrong.outputs.matrices[0].rows() + 1,
                                               Eigen::NoChange);
  AnyState<double> same = ds;
  CHECK_THROWS_AS(memory.reads_backward(state, all.queries.views(), wrong.outputs.views(), same,
                                        d.queries.views<double>()),
                  std::invalid_argument);
  if (!d.queries.matrices.empty())
    CHECK_THROWS_AS(memory.reads_backward(state, d.queries.views(), d.outputs.views(), same,
                                          d.queries.views<double>()),
                    std::invalid_argument);
  CHECK(same == ds);
  AnyState<double> own = state;
  CHECK_THROWS_AS(memory.reads_backward(own, all.queries.views(), d.outputs.views(), own,
                                        d.queries.views<double>()),
                  std::invalid_argument);
  CHECK(own == state);

  auto complex = all.cast<Complex>();
  AnyState<Complex> read = in_complex.state_from(state);
  const auto loss = [&] {
    for (Index t = 0; t < steps; ++t)
      in_complex.read(std::as_const(read), complex.queries.part(t, 1),
                      complex.outputs.part<Complex>(t, 1));
    return check::weighted_sum(object(complex.outputs), object(d.outputs)) +
           check::weighted_sum(read.object(), dlater.object());
  };
  const auto error = check::worst({{"queries", {object(complex.queries), object(d.queries)}},
                                   {"state", {read.object(), ds.object()}}},
                                  loss);
  INFO("worst in " << error.where);
  CHECK(error.worst <= 1e-10);
}

void backward_from_the_first_state(const AnyMemory<double>& memory, bool positive) {
  if (!memory.can().differentiable) return;
  for (const Index steps : {0, 1, 2, 17}) {
    Pass a(memory, steps, positive), b = a;
    a.backward();
    b.backward_from_initial();
    CHECK(difference(a.d.inputs, b.d.inputs) <= 1e-13);
    CHECK(difference(a.d.queries, b.d.queries) <= 1e-13);
    CHECK(difference(a.ds, b.ds) <= 1e-13);
  }
}

void checkpoints_fit_another_size(const AnyMemory<double>& small, const AnyMemory<double>& large,
                                  bool positive) {
  if (!small.can().differentiable) return;
  Pass of_small(small, 3, positive), fresh(large, 5, positive), reused = fresh;
  of_small.backward();  // fills what a backward pass keeps in the checkpoints
  reused.checkpoints = of_small.checkpoints;
  fw::AnyState<double> state = reused.initial;
  large.scan(state, reused.all.inputs.views(), reused.all.queries.views(),
             reused.all.outputs.views<double>(), reused.checkpoints);
  reused.backward();
  fresh.backward();
  CHECK(difference(reused.d.inputs, fresh.d.inputs) == 0);
  CHECK(difference(reused.d.queries, fresh.d.queries) == 0);
  CHECK(difference(reused.ds, fresh.ds) == 0);
}

void wrong_gradients_are_refused(const AnyMemory<double>& memory, bool positive) {
  if (!memory.can().differentiable) return;
  const Pass start(memory, 4, positive);
  for (const auto whose : {&Pass::all, &Pass::d})
    for (const auto part : {&Sequences::inputs, &Sequences::queries, &Sequences::outputs}) {
      if (whose == &Pass::all && part == &Sequences::outputs) continue;  // backward takes none
      for (std::size_t i = 0; i < (start.*whose.*part).matrices.size(); ++i)
        for (const bool by_row : {true, false}) backward_refuses(start, whose, part, i, by_row);
    }
}

#define FASTWEIGHTS_LAWS(S)                             \
  template Runs<S> runs_of(const Subject&);             \
  template Runs<S> runs_of(const AnyMemory<S>&, bool);  \
  template void step_is_write_and_read(const Runs<S>&); \
  template void scan_is_steps(const Runs<S>&);          \
  template void chunked_is_recurrent(const Runs<S>&);   \
  template void merged_is_recurrent(const Runs<S>&);    \
  template void state_is_a_value(const Runs<S>&);       \
  template void wrong_sizes_are_refused(const Runs<S>&);
FASTWEIGHTS_LAWS(float)
FASTWEIGHTS_LAWS(double)

}  // namespace laws
