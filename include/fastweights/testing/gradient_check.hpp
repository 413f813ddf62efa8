#pragma once

#include <complex>
#include <fastweights/algorithms/backward.hpp>
#include <fastweights/core/leaves.hpp>
#include <fastweights/testing/sequences.hpp>
#include <functional>
#include <string>
#include <vector>

/// \file
/// Are a rule's gradients right? Compared with the complex step f'(x) = Im f(x + ih)/h, which has
/// no cancellation and is exact to rounding (Squire & Trapp 1998, SIAM Review 40(1)).

namespace fw::testing {

/// The worst relative error over all arrays, max|a − b| / max|b|, and the array it was found in. An
/// array whose gradient vanishes, being below a millionth of the largest of all arrays, is compared
/// with that millionth: rounding is all there is of it.
struct GradientError {
  double worst = 0;
  std::string where;
};

namespace detail {

using fw::detail::Leaf;
using fw::detail::LeafPath;
using fw::detail::Object;
using fw::detail::object;
using fw::detail::ScalarKind;
using Complex = std::complex<double>;

// Two records with the same members, one in complex numbers and one in double.
struct Pair {
  Object complex, real;

  // Calls f(complex leaf, real leaf, path) for each but counters, which have no gradient.
  template <class F> void for_each(const F& f, std::string_view name = {}) const {
    const std::array<Object, 2> both{complex, real};
    fw::detail::visit_leaves(
        both.data(), 2,
        [&](const Leaf* leaves, const LeafPath& path) {
          if (leaves[0].scalar == ScalarKind::complex128) f(leaves[0], leaves[1], path);
        },
        {.name = name});
  }
};

// Counters stay as they are: the complex record is of the same size.
inline void to_complex(const Object& real, const Object& complex) {
  const std::array<Object, 2> both{complex, real};
  fw::detail::visit_leaves(both.data(), 2, [](const Leaf* leaves, const LeafPath&) {
    std::int64_t count = 0;
    if (leaves[0].scalar == ScalarKind::complex128)
      leaves[0].entries<Complex>() = leaves[1].entries<double>().cast<Complex>();
    else if (leaves[1].scalar == ScalarKind::integer && leaves[1].load_integer(0, count))
      leaves[0].store_integer(0, count);
  });
}

// Σ up·x over every array of a record.
inline Complex weighted_sum(const Object& record, const Object& up) {
  Complex sum = 0;
  Pair{record, up}.for_each([&](const Leaf& x, const Leaf& u, const LeafPath&) {
    sum += (x.entries<Complex>() * u.entries<double>().cast<Complex>()).sum();
  });
  return sum;
}

struct Comparison {
  std::string path;
  double difference = 0, largest = 0;
};

// The gradients of one array by complex step, against those given. What is not finite is infinitely
// wrong.
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
    c.difference = std::max(c.difference, std::isfinite(difference) ? difference : infinity);
    if (std::isfinite(exact)) c.largest = std::max(c.largest, std::abs(exact));
  }
  return c;
}

// A record of inputs in complex numbers, their gradient and how errors name them.
struct Checked {
  std::string_view name;
  Pair pair;
};

inline void fill_normal(const Object& record, Random& random) {
  fw::detail::visit_leaves(&record, 1, [&](const Leaf* leaf, const LeafPath&) {
    for (Index i = 0; i < leaf->size(); ++i) leaf->store(i, random.normal());
  });
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

inline GradientError worst(const std::vector<Checked>& records,
                           const std::function<Complex()>& loss) {
  std::vector<Comparison> all;
  for (const Checked& record : records)
    record.pair.for_each(
        [&](const Leaf& array, const Leaf& gradient, const LeafPath& path) {
          all.push_back(compare(path.text(), array, gradient, loss));
        },
        record.name);
  return worst(all);
}

}  // namespace detail

/// Checks the gradients of m, a memory in double, for every input, the initial state and the final
/// state's gradient over `steps` random steps from a used state. m.cast<T>() must give the rule in
/// another scalar.
template <Differentiable M>
requires std::same_as<typename M::Scalar, double> GradientError
gradient_error(const M& m, Index steps, std::uint64_t seed = 1, bool positive = false) {
  Random random(seed);
  const auto complex_rule = m.template cast<std::complex<double>>();
  using Z = std::remove_cvref_t<decltype(complex_rule)>;

  auto all = random_sequences(m, steps, random, positive);
  const auto up = random_sequences(m, steps, random, positive);
  const StateOf<M> initial = used_state(m, 3, random, positive);
  const StateOf<M> up_state = used_state(m, 5, random, positive);
  auto up_outputs = all.outputs;
  detail::fill_normal(fw::detail::object(up_outputs), random);

  StateOf<M> state = initial, ds = up_state;
  auto dinputs = up.inputs;
  auto dqueries = up.queries;
  set_zero(dinputs);
  set_zero(dqueries);
  Checkpoints<M> kept;
  scan(m, state, view<WriteSequence<M>>(all.inputs), view<ReadSequence<M>>(all.queries),
       view<OutSequence<M>>(all.outputs), kept);
  backward(m, kept, view<WriteSequence<M>>(all.inputs), view<ReadSequence<M>>(all.queries),
           view<OutGradSequence<M>>(up_outputs), ds, view<WriteGradSequence<M>>(dinputs),
           view<ReadGradSequence<M>>(dqueries));

  Random unused(seed);
  auto zs = random_sequences(complex_rule, steps, unused);
  StateOf<Z> zinitial = initial_state(complex_rule);
  using fw::detail::object;
  detail::to_complex(object(all.inputs), object(zs.inputs));
  detail::to_complex(object(all.queries), object(zs.queries));
  detail::to_complex(object(initial), object(zinitial));
  const auto loss = [&] {
    StateOf<Z> zstate = zinitial;
    scan(complex_rule, zstate, view<WriteSequence<Z>>(zs.inputs), view<ReadSequence<Z>>(zs.queries),
         view<OutSequence<Z>>(zs.outputs));
    return detail::weighted_sum(object(zs.outputs), object(up_outputs)) +
           detail::weighted_sum(object(zstate), object(up_state));
  };
  return detail::worst({{"inputs", {object(zs.inputs), object(dinputs)}},
                        {"queries", {object(zs.queries), object(dqueries)}},
                        {"initial state", {object(zinitial), object(ds)}}},
                       loss);
}

}  // namespace fw::testing
