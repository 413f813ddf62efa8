#include "support/accepted_tokens.hpp"

#include <cmath>
#include <limits>

namespace laws {

namespace {

// Entry i of a column of `rows` numbers. Keys and distributions have sum 1 and so at most length 1.
double entry(fw::Role role, Index i, Index rows, double value_scale) {
  const auto number = static_cast<double>(i + 1), n = static_cast<double>(rows);
  if (role == fw::Role::key || role == fw::Role::distribution) return number / (n * (n + 1) / 2);
  return role == fw::Role::value ? -3 * number * value_scale : 0.5;
}

// Values are longer than 1 but in Oja's rule, which would be unstable: its values are what the keys
// of a delta rule are.
double value_scale(std::string_view rule, Index rows) {
  const auto n = static_cast<double>(rows);
  return rule == "GatedOjaRule" ? 1 / (3 * std::sqrt(n * (n + 1) * (2 * n + 1) / 6)) : 1;
}

}  // namespace

template <class S>
fw::testing::AnySequences<S> accepted_tokens(const AnyMemory<S>& memory, Index steps) {
  using Record = fw::testing::AnyRecord<S>;
  const auto filled = [&](std::span<const fw::SignatureMember> members) {
    Record record(members, steps, S(0));
    for (std::size_t i = 0; i < members.size(); ++i) {
      const fw::SignatureMember& m = members[i];
      for (Index at = 0; at < record.matrices[i].size(); ++at)
        record.matrices[i].data()[at] =
            static_cast<S>(entry(m.role, at % m.rows, m.rows, value_scale(memory.name(), m.rows)));
    }
    return record;
  };
  return {filled(memory.written()), filled(memory.read_with()),
          Record(memory.given(), steps, S(std::numeric_limits<double>::quiet_NaN()))};
}

template fw::testing::AnySequences<float> accepted_tokens(const AnyMemory<float>&, Index);
template fw::testing::AnySequences<double> accepted_tokens(const AnyMemory<double>&, Index);
template fw::testing::AnySequences<Complex> accepted_tokens(const AnyMemory<Complex>&, Index);

}  // namespace laws
