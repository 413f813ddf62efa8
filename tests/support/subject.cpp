#include "support/subject.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>

#include "support/sizes.hpp"

namespace laws {

template <class S> bool Subject::has() const {
  const auto names = fw::memory_names<S>();
  return std::find(names.begin(), names.end(), name) != names.end();
}

namespace {

using fw::detail::Leaf;
using fw::detail::LeafPath;
using fw::detail::ScalarKind;
using More = std::map<std::string, double>;

// Values of options that are small beside the sequences of the laws.
const More small = {{"capacity", 9}, {"levels", 4},  {"slots", 3},       {"window", 2},
                    {"batch", 4},    {"hidden", 5},  {"iterations", 3},  {"functions", 6},
                    {"samples", 5},  {"chunk", 3},   {"rate", 2},        {"bins", 16},
                    {"features", 6}, {"segment", 3}, {"pooled_size", 2}, {"frequencies", 2}};

// Other values, one at a time.
const std::map<std::string, std::vector<double>> others = {{"capacity", {1, 4, 200}},
                                                           {"levels", {1, 6}},
                                                           {"slots", {1, 65}},
                                                           {"frequencies", {1, 33}},
                                                           {"window", {1, 4}},
                                                           {"batch", {1, 100}},
                                                           {"hidden", {1, 17}},
                                                           {"iterations", {0, 7}},
                                                           {"functions", {1, 7}},
                                                           {"samples", {1, 8}},
                                                           {"chunk", {1, 5}},
                                                           {"rate", {1, 5}},
                                                           {"components", {3}},
                                                           {"padding", {0, 1.3}},
                                                           {"parity", {1}},
                                                           {"heads", {2, 3, 6}},
                                                           {"tau", {0.5, 0.9}},
                                                           {"published_sampling", {1}},
                                                           {"refuse", {1}},
                                                           {"slide", {1}},
                                                           {"scale", {2}},
                                                           {"epsilon", {0.5}},
                                                           {"angles", {1}},
                                                           {"ranks", {1, 3}},
                                                           {"decay", {0.5}},
                                                           {"segment", {1, 5}},
                                                           {"pooled_size", {1, 17}},
                                                           {"restart", {0}},
                                                           {"gradients_of_the_past", {0}},
                                                           {"largest", {1}}};

// The names in FASTWEIGHTS_LAWS_OF, which must be known; without it, all of the table.
template <class S> std::vector<std::string> chosen_names() {
  const char* wanted = std::getenv("FASTWEIGHTS_LAWS_OF");
  if (wanted == nullptr) return fw::memory_names<S>();
  std::vector<std::string> names;
  std::istringstream list(wanted);
  for (std::string name; std::getline(list, name, ',');) {
    fw::memory_facts(name);  // throws for an unknown one
    if (Subject{name, {}}.has<S>()) names.push_back(name);
  }
  return names;
}

// The first component of a path.
std::string root(const LeafPath& path) {
  const std::string text = path.text();
  return text.substr(0, text.find('.'));
}

}  // namespace

std::string Subject::text() const {
  std::string text = name + ", d_k = " + std::to_string(options.key_size) +
                     ", d_v = " + std::to_string(options.value_size);
  for (const auto& [option, value] : options.more)
    text += ", " + option + " = " + fw::detail::number_text(value);
  return text;
}

Subject subject(const std::string& name, Index dk, Index dv) {
  Subject s{name, {dk, dv}};
  for (const fw::MemoryOption& option : fw::memory_options(name))
    if (const auto found = small.find(option.name); found != small.end())
      s.options.more[option.name] = found->second;
  return s;
}

template <class S> std::vector<Subject> subjects(Index dk, Index dv) {
  std::vector<Subject> all;
  for (const std::string& name : chosen_names<S>())
    if (dk == dv || !fw::memory_facts(name).square) all.push_back(subject(name, dk, dv));
  return all;
}

template <class S> std::vector<Subject> variants() {
  std::vector<Subject> all;
  for (const std::string& name : chosen_names<S>())
    for (const fw::MemoryOption& option : fw::memory_options(name))
      if (const auto found = others.find(option.name); found != others.end())
        for (const double value : ::sizes(found->second, {found->second.front()})) {
          const Index d = option.name == "heads" ? 6 : 5;  // which heads divide
          Subject s = subject(name, d, d);
          s.options.more[option.name] = value;
          if (option.name == "refuse") s.options.more["capacity"] = 200;
          all.push_back(s);
        }
  return all;
}

AnyState<double> first_state(const AnyMemory<double>& memory) {
  AnyState<double> state = memory.initial_state();
  const fw::detail::Object record = state.object();
  fw::Random random(77);
  bool has_weights = false;
  fw::detail::visit_leaves(&record, 1, [&](const Leaf*, const LeafPath& path) {
    has_weights = has_weights || root(path) == "weights";
  });
  fw::detail::visit_leaves(&record, 1, [&](const Leaf* leaf, const LeafPath& path) {
    if (leaf->scalar != ScalarKind::float64) return;
    const std::string part = root(path);
    for (Index i = 0; i < leaf->size(); ++i) {
      double& entry = leaf->entries<double>()[i];
      if (part == "slow")
        entry += 0.2 * (2 * random.uniform() - 1);
      else if (part == "weights")
        entry += random.normal() / std::sqrt(static_cast<double>(leaf->cols)) / 2;
      else if (memory.can().learns_initial_state && !has_weights)
        entry = random.uniform() - 0.5;
    }
  });
  return state;
}

template <class S> AnyState<S> first_state(const Subject& subject) {
  const AnyMemory<S> memory = subject.memory<S>();
  if constexpr (std::is_same_v<S, double>)
    return first_state(memory);
  else if (subject.has<double>())
    return memory.state_from(first_state(subject.memory<double>()));
  else
    return memory.initial_state();
}

template <class S>
Run<S>::Run(const Subject& subject, Index steps, Index used, std::uint64_t seed)
    : Run(subject.memory<S>(), first_state<S>(subject), subject.positive(), steps, used, seed) {}

template <class S>
Run<S>::Run(AnyMemory<S> any, AnyState<S> first, bool positive, Index steps, Index used,
            std::uint64_t seed)
    : memory(std::move(any)), state(std::move(first)) {
  fw::Random random(seed);
  all = fw::testing::random_sequences(memory, steps, random, positive);
  auto before = fw::testing::random_sequences(memory, used, random, positive);
  fw::testing::scan(memory, state, before);
}

template <class S> Values values_of(const fw::testing::AnyRecord<S>& record) {
  Values values;
  for (const auto& matrix : record.matrices)
    for (Index i = 0; i < matrix.size(); ++i)
      values.numbers.push_back(static_cast<double>(Eigen::numext::real(matrix.data()[i])));
  return values;
}

#define FASTWEIGHTS_LAWS(S)                                \
  template bool Subject::has<S>() const;                   \
  template std::vector<Subject> subjects<S>(Index, Index); \
  template std::vector<Subject> variants<S>();             \
  template AnyState<S> first_state<S>(const Subject&);     \
  template class Run<S>;                                   \
  template Values values_of(const fw::testing::AnyRecord<S>&);
FASTWEIGHTS_LAWS(float)
FASTWEIGHTS_LAWS(double)
FASTWEIGHTS_LAWS(Complex)

}  // namespace laws
