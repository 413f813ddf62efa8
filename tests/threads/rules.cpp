#include <fastweights/any_memory/table.hpp>
#include <fastweights/testing/any_sequences.hpp>

#include "together.hpp"

// Every memory of the table, in float: the sanitizer compiles them for this program alone.

namespace {

using Memory = fw::AnyMemory<float>;
using State = fw::AnyState<float>;
using Record = fw::testing::AnyRecord<float>;
using Sequences = fw::testing::AnySequences<float>;

constexpr Index tokens = 40;

Memory memory(const std::string& name) {
  fw::MemoryOptions options{.key_size = 17, .value_size = 33};
  if (fw::memory_facts(name).square) options.value_size = options.key_size;
  // A cache that is full before the end, and other small values.
  const std::map<std::string, double> small = {{"capacity", 9},   {"functions", 6}, {"samples", 5},
                                               {"iterations", 3}, {"hidden", 19},   {"batch", 4}};
  for (const fw::MemoryOption& option : fw::memory_options(name))
    if (const auto found = small.find(option.name); found != small.end())
      options.more.insert(*found);
  return fw::make_memory<float>(name, options);
}

// A net of zeros would learn nothing, and a memory that a step multiplies would stay zero.
State first_state(const Memory& m) {
  State state = m.initial_state();
  const fw::detail::Object record = state.object();
  fw::Random random(4);
  fw::detail::visit_leaves(
      &record, 1, [&](const fw::detail::Leaf* leaf, const fw::detail::LeafPath& path) {
        const std::string text = path.text();
        if (leaf->scalar == fw::detail::ScalarKind::float32 &&
            (m.can().learns_initial_state || text.starts_with("weights") ||
             text.starts_with("slow")))
          for (Index i = 0; i < leaf->size(); ++i)
            leaf->entries<float>()[i] += 0.2f * static_cast<float>(2 * random.uniform() - 1);
      });
  return state;
}

// Every number of a record, below those of `all`.
void append(std::vector<float>& all, const Record& record) {
  for (const MatrixXf& matrix : record.matrices)
    all.insert(all.end(), matrix.data(), matrix.data() + matrix.size());
}

MatrixXf column(const std::vector<float>& numbers) {
  return Eigen::Map<const MatrixXf>(numbers.data(), static_cast<Index>(numbers.size()), 1);
}

// Steps, scans and gradients; the kernels' buffers belong to the threads.
MatrixXf every_form(const Memory& m, const State& initial, Sequences all) {
  std::vector<float> results;
  const auto in = all.inputs.views(), queries = all.queries.views();
  const auto out = all.outputs.views<float>();
  const auto run = [&](const auto& form) {
    State state = initial;
    form(state);
    append(results, all.outputs);
  };
  run([&](State& s) {
    for (Index t = 0; t < tokens; ++t)
      m.step(s, all.inputs.part(t, 1), all.queries.part(t, 1), all.outputs.part<float>(t, 1));
  });
  run([&](State& s) { m.scan(s, in, queries, out); });
  if (m.can().chunkable) run([&](State& s) { m.chunked_scan(s, in, queries, out, 16); });
  if (m.can().mergeable) run([&](State& s) { m.parallel_scan(s, in, queries, out, 3); });
  if (!m.can().differentiable) return column(results);
  fw::AnyCheckpoints<float> checkpoints;
  run([&](State& s) { m.scan(s, in, queries, out, checkpoints); });
  Record dwritten(m.written(), tokens, 0), dqueries(m.read_with(), tokens, 0);
  Record dy(m.given(), tokens, 1);
  State ds = m.zero_gradient();
  m.backward(checkpoints, in, queries, dy.views(), ds, dwritten.views<float>(),
             dqueries.views<float>());
  append(results, dwritten);
  append(results, dqueries);
  return column(results);
}

// Numbers of one head after another, in the rows of shared matrices.
Record stacked(std::span<const fw::SignatureMember> members, fw::Random& random, bool positive) {
  std::vector<fw::SignatureMember> rows(members.begin(), members.end());
  for (fw::SignatureMember& m : rows) m.rows *= thread_count;
  Record record(rows, tokens, 0);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (Index at = 0; at < record.matrices[i].size(); ++at)
      record.matrices[i].data()[at] = static_cast<float>(
          fw::testing::detail::draw(members[i].role, members[i].rows, random, positive));
  return record;
}
template <class S> std::vector<fw::AnyView<S>> head(Record& record, int h) {
  auto views = record.views<S>();
  for (auto& view : views)
    view = view.rows_of(h * view.rows / thread_count, view.rows / thread_count);
  return views;
}

// The heads of one sequence: disjoint rows of shared matrices, as parallel_for runs them.
MatrixXf heads_in_threads(const Memory& m, const State& initial, bool positive, bool parallel) {
  fw::Random random(5);
  Record in = stacked(m.written(), random, positive),
         queries = stacked(m.read_with(), random, positive);
  Record out = stacked(m.given(), random, positive);
  std::vector<State> states(thread_count, initial);
  const auto run = [&](int h) {
    m.scan(states[static_cast<std::size_t>(h)], head<const float>(in, h),
           head<const float>(queries, h), head<float>(out, h));
  };
  if (parallel)
    together(run);
  else
    for (int h = 0; h < thread_count; ++h) run(h);
  std::vector<float> results;
  append(results, out);
  return column(results);
}

void check_memory(const std::string& name) {
  const Memory m = memory(name);
  const State initial = first_state(m);
  const bool positive = fw::memory_facts(name).positive_keys;
  fw::Random random(1);
  const Sequences all = fw::testing::random_sequences(m, tokens, random, positive);
  check_same((name + ": steps, scans, gradients").c_str(),
             [&](int) { return every_form(m, initial, all); });
  const bool same =
      heads_in_threads(m, initial, positive, true) == heads_in_threads(m, initial, positive, false);
  std::printf("%-72s %s\n", (name + ": heads in threads").c_str(), same ? "same" : "differ");
  failures += same ? 0 : 1;
}

}  // namespace

void check_rules() {
  for (const std::string& name : fw::memory_names<float>()) check_memory(name);
}
