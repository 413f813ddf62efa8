#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "support/accepted_tokens.hpp"
#include "support/catch.hpp"

/// \file
/// Every memory: what a NaN does, and very large and very small tokens.

namespace {

using fw::Index;
using fw::Role;
using laws::Run;
using laws::Subject;

std::vector<bool> finite(const laws::Values& values) {
  std::vector<bool> each;
  for (const double x : values.numbers) each.push_back(std::isfinite(x));
  return each;
}
template <class Record> bool all_finite(const Record& record) {
  const std::vector<bool> each = finite(laws::values_of(record));
  return std::find(each.begin(), each.end(), false) == each.end();
}

constexpr Index steps = 8, bad_token = 3;

// True if the outputs of the tokens before the bad one are finite.
template <class S> bool finite_before(const Run<S>& run) {
  for (const auto& matrix : run.all.outputs.matrices)
    if (!matrix.leftCols(matrix.cols() / steps * bad_token).allFinite()) return false;
  return true;
}

// A draw and a threshold choose what is written.
bool is_kept(std::string_view member) { return member != "draws" && member != "threshold"; }

// A cache of one token drops it, and needs no decay of it.
bool keeps_tokens(const Subject& subject) {
  const auto capacity = subject.options.more.find("capacity");
  return capacity == subject.options.more.end() || capacity->second > 1;
}

// Puts a NaN in the last row of the member of a record at one token; also in that of a query with
// the name of an input, which is that input. Returns whether there is such a member.
template <class S> bool spoil(fw::testing::AnyRecord<S>& record, std::string_view name) {
  for (std::size_t i = 0; i < record.matrices.size(); ++i) {
    const fw::SignatureMember& m = record.members()[i];
    if (m.name != name) continue;
    record.matrices[i](m.rows - 1, bad_token * m.width) = static_cast<S>(std::nan(""));
    return true;
  }
  return false;
}

template <class S> void follows_a_nan(const Subject& subject, Run<S> run, std::string_view member) {
  INFO(member);
  const bool is_written = spoil(run.all.inputs, member), is_read = spoil(run.all.queries, member);
  Run<S> stepped = run, apart = run, scanned = run;
  const bool reads_first = run.memory.can().reads_first;
  bool kept = false;
  for (Index t = 0; t < steps; ++t) {
    stepped.step(t);
    if (t == bad_token) kept = !all_finite(stepped.state);
    if (reads_first) apart.read(t);
    apart.write(t);
    if (!reads_first) apart.read(t);
  }
  scanned.scan();
  for (const Run<S>* other : {&apart, &scanned}) {
    CHECK(finite(laws::values_of(other->all.outputs)) ==
          finite(laws::values_of(stepped.all.outputs)));
    CHECK(finite(laws::values_of(other->state)) == finite(laws::values_of(stepped.state)));
  }
  CHECK(finite_before(stepped));
  if (is_read) CHECK(!all_finite(stepped.all.outputs));
  if (is_written && keeps_tokens(subject)) CHECK(kept == is_kept(member));
}

template <class S> void follows_nans(const std::vector<Subject>& all) {
  for (const Subject& subject : all) {
    INFO(subject.text());
    const Run<S> run(subject, steps, 3, 2);
    std::set<std::string_view> names;
    for (const auto members : {run.memory.written(), run.memory.read_with()})
      for (const fw::SignatureMember& m : members)
        if (m.rows > 0) names.insert(m.name);
    for (const std::string_view name : names) follows_a_nan(subject, run, name);
  }
}

TEST_CASE("a NaN: steps, writes and reads apart, and scans agree about what is finite", "[laws]") {
  for (const auto& [dk, dv] : {std::pair<Index, Index>{5, 3}, {5, 5}, {20, 20}}) {
    follows_nans<double>(laws::subjects<double>(dk, dv));
    follows_nans<float>(laws::subjects<float>(dk, dv));
  }
  follows_nans<double>(laws::variants<double>());
}

// Memories of which a token does not decide whether the state stays finite: see
// algorithms/checked.hpp.
bool decides_stability(const std::string& name) {
  for (const char* other :
       {"Comba", "QDelta", "MomentumDeltaRule", "LowRankRule", "IdentityLowRankRule", "TttMlp",
        "TitansMlp", "TttRegression", "TitansRegression"})
    if (name == other) return false;
  return true;
}

// Tokens with keys and values of these sizes are refused, or keep the state finite.
void keeps_the_state_finite(const Subject& subject, float key_size, float value_size) {
  INFO(subject.text() << ", keys of " << key_size << ", values of " << value_size);
  constexpr Index many = 100;
  const auto memory = subject.memory<float>();
  auto all = laws::accepted_tokens(memory, many);
  for (auto* record : {&all.inputs, &all.queries})
    for (std::size_t i = 0; i < record->matrices.size(); ++i) {
      const Role role = record->members()[i].role;
      record->matrices[i] *= role == Role::key ? key_size : role == Role::value ? value_size : 1.0f;
    }
  auto state = laws::first_state<float>(subject);
  const auto first = state;
  try {
    memory.checked_scan(state, all.inputs.views(), all.queries.views(), all.outputs.views<float>());
    CHECK(all_finite(state));
    if (key_size <= 1 && value_size <= 1) CHECK(all_finite(all.outputs));
  } catch (const std::invalid_argument&) {
    CHECK(state == first);
    CHECK((key_size > 1 || value_size > 1));  // small tokens are no reason to refuse
  }
}

TEST_CASE("very large and very small tokens are refused or keep a state in float finite",
          "[laws][checked]") {
  for (const auto& [dk, dv] : {std::pair<Index, Index>{5, 3}, {5, 5}, {20, 20}})
    for (const Subject& subject : laws::subjects<float>(dk, dv)) {
      // Moneta divides by the size of its sum, which a small token makes small.
      const bool divides = subject.name == "Moneta";
      for (const auto& [key, value] :
           {std::pair{1e-20f, 1.0f}, {1.0f, 1e-20f}, {1e-20f, 1e-20f}, {1e-30f, 1e-30f}})
        if (!divides) keeps_the_state_finite(subject, key, value);
      for (const auto& [key, value] : {std::pair{1e10f, 1.0f},
                                       {1.0f, 1e10f},
                                       {1e10f, 1e10f},
                                       {1e10f, 1e-20f},
                                       {1e-20f, 1e10f},
                                       {2e14f, 2e14f}})
        if (!divides && decides_stability(subject.name))
          keeps_the_state_finite(subject, key, value);
    }
}

}  // namespace
