#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fastweights/core/finite.hpp>
#include <fastweights/core/implementation/inline.hpp>
#include <fastweights/testing/gradient_check.hpp>
#include <limits>

/// \file
/// The functions of testing/gradient_check.hpp.

namespace fw::inline FASTWEIGHTS_ABI::testing::detail {

using fw::detail::Leaf;
using fw::detail::LeafPath;
using fw::detail::ScalarKind;
using fw::detail::visit_leaves;

FASTWEIGHTS_INLINE void fill_normal(const Object& record, Random& random) {
  visit_leaves(&record, 1, [&](const Leaf* leaf, const LeafPath&) {
    for (Index i = 0; i < leaf->size(); ++i) leaf->store(i, random.normal());
  });
}

FASTWEIGHTS_INLINE void halve(const Object& record) {
  visit_leaves(&record, 1, [](const Leaf* leaf, const LeafPath&) { leaf->entries<double>() /= 2; });
}

FASTWEIGHTS_INLINE void to_complex(const Object& real, const Object& complex) {
  fw::detail::set_columns(complex, real);
  const std::array<Object, 2> both{complex, real};
  visit_leaves(both.data(), 2, [](const Leaf* leaves, const LeafPath&) {
    std::int64_t count = 0;
    if (leaves[0].scalar == ScalarKind::complex128)
      leaves[0].entries<Complex>() = leaves[1].entries<double>().cast<Complex>();
    else if (leaves[1].scalar == ScalarKind::integer && leaves[1].load_integer(0, count))
      leaves[0].store_integer(0, count);
  });
}

// Calls f(complex leaf, real leaf, path) for every leaf except counters, which have no gradient.
template <class F> void for_each_array(const Pair& pair, std::string_view name, const F& f) {
  const std::array<Object, 2> both{pair.complex, pair.real};
  visit_leaves(both.data(), 2,
               [&](const Leaf* leaves, const LeafPath& path) {
                 if (leaves[0].scalar == ScalarKind::complex128) f(leaves[0], leaves[1], path);
               },
               {.name = name});
}

FASTWEIGHTS_INLINE Complex weighted_sum(const Object& record, const Object& weights) {
  Complex sum = 0;
  for_each_array({record, weights}, {}, [&](const Leaf& x, const Leaf& w, const LeafPath&) {
    const Index n = std::min(x.size(), w.size());  // what a state has grown by has no weight
    sum += (x.entries<Complex>().head(n) * w.entries<double>().head(n).cast<Complex>()).sum();
  });
  return sum;
}

struct Comparison {
  std::string path;
  double difference = 0, largest = 0;
};

// Compares the given gradient of one array with the complex step.
inline Comparison compare(const std::string& path, const Leaf& array, const Leaf& given,
                          const std::function<Complex()>& loss) {
  constexpr double h = 1e-30, infinity = std::numeric_limits<double>::infinity();
  Comparison c{path};
  for (Index i = 0; i < array.size(); ++i) {
    Complex& entry = array.entries<Complex>()[i];
    const Complex before = entry;
    entry += Complex(0, h);
    const double exact = loss().imag() / h;
    entry = before;
    const double difference = std::abs(given.entries<double>()[i] - exact);
    c.difference =
        std::max(c.difference, fw::detail::is_finite(difference) ? difference : infinity);
    if (fw::detail::is_finite(exact)) c.largest = std::max(c.largest, std::abs(exact));
  }
  return c;
}

inline GradientError worst(const std::vector<Comparison>& all) {
  double largest = 0;
  for (const Comparison& c : all) largest = std::max(largest, c.largest);
  GradientError error;
  for (const Comparison& c : all) {
    const double scale = std::max(c.largest, 1e-6 * largest);
    const double relative = scale > 0 ? c.difference / scale : c.difference;
    if (relative > error.worst) error = {relative, c.path};
  }
  return error;
}

FASTWEIGHTS_INLINE GradientError worst(const std::vector<CheckedRecord>& records,
                                       const std::function<Complex()>& loss) {
  std::vector<Comparison> all;
  for (const CheckedRecord& record : records)
    for_each_array(record.pair, record.name,
                   [&](const Leaf& array, const Leaf& gradient, const LeafPath& path) {
                     all.push_back(compare(path.text(), array, gradient, loss));
                   });
  return worst(all);
}

}  // namespace fw::testing::detail
