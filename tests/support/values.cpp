#include "support/values.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "support/largest_entry.hpp"

namespace laws {

namespace {

using Eigen::Index;
using fw::detail::Leaf;
using fw::detail::LeafPath;
using fw::detail::ScalarKind;

double number(const Leaf& leaf, Index i) {
  switch (leaf.scalar) {
    case ScalarKind::float32:
      return static_cast<double>(leaf.entries<float>()[i]);
    case ScalarKind::float64:
      return leaf.entries<double>()[i];
    case ScalarKind::complex128:
      return leaf.entries<std::complex<double>>()[i].real();
    case ScalarKind::float16:
      return static_cast<double>(leaf.entries<Eigen::half>()[i]);
    case ScalarKind::bfloat16:
      return static_cast<double>(leaf.entries<Eigen::bfloat16>()[i]);
    default:
      throw std::logic_error("expected a leaf of real numbers");
  }
}

}  // namespace

Values values_of(const fw::detail::Object& record) {
  Values values;
  fw::detail::visit_leaves(&record, 1, [&](const Leaf* leaf, const LeafPath&) {
    for (Index i = 0; i < leaf->size(); ++i) {
      if (leaf->scalar == ScalarKind::integer)
        leaf->load_integer(i, values.counters.emplace_back());
      else
        values.numbers.push_back(number(*leaf, i));
    }
  });
  return values;
}

double difference(const Values& a, const Values& b) {
  if (a.counters != b.counters || a.numbers.size() != b.numbers.size())
    return std::numeric_limits<double>::infinity();
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < b.numbers.size(); ++i) {
    keep_worst(worst, std::abs(a.numbers[i] - b.numbers[i]));
    largest = std::max(largest, std::abs(b.numbers[i]));
  }
  return largest > 0 ? worst / largest : worst;
}

}  // namespace laws
