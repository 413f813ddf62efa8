#pragma once

#include <cstring>
#include <fastweights/algorithms/parallel_scan.hpp>
#include <fastweights/testing/gradient_check.hpp>
#include <unsupported/Eigen/AutoDiff>

#include "catch.hpp"
#include "largest_entry.hpp"
#include "sizes.hpp"

/// \file
/// The laws every memory obeys, whichever rule it is. One test file a rule instantiates them.

namespace laws {

using fw::Index;
using fw::testing::Sequences;

/// max|a − b| / max|b| over the entries of two records together. Not array by array: the
/// normaliser's compensation holds what rounding left over, which another order of summation leaves
/// otherwise.
template <class A, class B> double difference(const A& a, const B& b) {
  double worst = 0, largest = 0;
  fw::for_each_leaf(
      [&](const auto& x, const auto& y) {
        if constexpr (requires { x.array(); }) {
          for (Index j = 0; j < y.cols(); ++j)
            for (Index i = 0; i < y.rows(); ++i) {
              const double error = std::abs(double(x(i, j)) - double(y(i, j)));
              keep_worst(worst, error);
              largest = std::max(largest, std::abs(double(y(i, j))));
            }
        } else if (x != y) {
          worst = std::numeric_limits<double>::infinity();
        }
      },
      a, b);
  return largest > 0 ? worst / largest : worst;
}

template <class M> void scan(const M& m, fw::StateOf<M>& s, Sequences<M>& all) {
  fw::scan(m, s, fw::view<fw::WriteSequence<M>>(all.inputs),
           fw::view<fw::ReadSequence<M>>(all.queries), fw::view<fw::OutSequence<M>>(all.outputs));
}

// Steps first … first + count − 1 of `all`, through views.
template <class M>
void scan_part(const M& m, fw::StateOf<M>& s, Sequences<M>& all, Index first, Index count) {
  const auto signature = m.signature();
  const auto part = [&](auto views, const auto& extents) {
    return fw::detail::steps(views, extents, first, count);
  };
  fw::scan(m, s, part(fw::view<fw::WriteSequence<M>>(all.inputs), signature.write()),
           part(fw::view<fw::ReadSequence<M>>(all.queries), signature.read()),
           part(fw::view<fw::OutSequence<M>>(all.outputs), signature.out()));
}

template <class M> auto tokens(const M& m, Sequences<M>& all, Index t) {
  const auto signature = m.signature();
  return std::make_tuple(fw::detail::token_at<fw::WriteToken<M>>(
                             fw::view<fw::WriteSequence<M>>(all.inputs), signature.write(), t),
                         fw::detail::token_at<fw::ReadToken<M>>(
                             fw::view<fw::ReadSequence<M>>(all.queries), signature.read(), t),
                         fw::detail::token_at<fw::OutToken<M>>(
                             fw::view<fw::OutSequence<M>>(all.outputs), signature.out(), t));
}

/// step = write then read (read then write where the rule reads first).
template <class M> void step_is_write_and_read(const M& m, bool positive) {
  fw::Random random(3);
  auto all = fw::testing::random_sequences(m, 5, random, positive);
  auto same = all;
  auto stepped = fw::testing::used_state(m, 4, random, positive);
  auto apart = stepped;
  for (Index t = 0; t < 5; ++t) {
    const auto a = tokens(m, all, t);
    const auto b = tokens(m, same, t);
    fw::step(m, stepped, std::get<0>(a), std::get<1>(a), std::get<2>(a));
    if (fw::reads_first<M>()) fw::read(m, apart, std::get<1>(b), std::get<2>(b));
    fw::write(m, apart, std::get<0>(b));
    if (!fw::reads_first<M>()) fw::read(m, apart, std::get<1>(b), std::get<2>(b));
  }
  // Not to the last bit: a kernel reads what the token adds apart from what there was.
  CHECK(difference(all.outputs, same.outputs) <= 1e-14);
  CHECK(difference(stepped, apart) <= 1e-14);
}

/// scan = steps, for every way to split the sequence in two, from a used state.
template <class M> void scan_is_steps(const M& m, bool positive) {
  constexpr Index length = 13;
  fw::Random random(4);
  auto all = fw::testing::random_sequences(m, length, random, positive);
  const auto start = fw::testing::used_state(m, 6, random, positive);
  auto by_steps = all;
  auto expected = start;
  for (Index t = 0; t < length; ++t) {
    const auto a = tokens(m, by_steps, t);
    fw::step(m, expected, std::get<0>(a), std::get<1>(a), std::get<2>(a));
  }
  for (Index split = 0; split <= length; ++split) {
    auto scanned = all;
    auto state = start;
    scan_part(m, state, scanned, 0, split);
    scan_part(m, state, scanned, split, length - split);
    CHECK(difference(scanned.outputs, by_steps.outputs) <= 1e-13);
    CHECK(difference(state, expected) <= 1e-13);
  }
}

/// Chunked = recurrent, for chunks that divide the sequence, that do not, and longer ones.
template <class M> void chunked_is_recurrent(const M& m, bool positive) {
  if constexpr (fw::Chunkable<M>) {
    fw::Random random(5);
    auto all = fw::testing::random_sequences(m, 100, random, positive);
    const auto start = fw::testing::used_state(m, 6, random, positive);
    auto expected = all;
    auto state = start;
    scan(m, state, expected);
    for (const Index chunk : {1, 3, 20, 63, 64, 100, 200}) {
      auto chunked = all;
      auto chunk_state = start;
      fw::chunked_scan(m, chunk_state, fw::view<fw::WriteSequence<M>>(chunked.inputs),
                       fw::view<fw::ReadSequence<M>>(chunked.queries),
                       fw::view<fw::OutSequence<M>>(chunked.outputs), chunk);
      CHECK(difference(chunked.outputs, expected.outputs) <= 1e-12);
      CHECK(difference(chunk_state, state) <= 1e-12);
    }
  }
}

/// Segments summed up apart and applied in order = one scan.
template <class M> void merged_is_recurrent(const M& m, bool positive) {
  if constexpr (fw::Mergeable<M>) {
    fw::Random random(6);
    auto all = fw::testing::random_sequences(m, 23, random, positive);
    const auto start = fw::testing::used_state(m, 6, random, positive);
    auto expected = all;
    auto state = start;
    scan(m, state, expected);
    for (const Index pieces : {1, 2, 3, 7, 23, 40}) {
      auto cut = all;
      auto cut_state = start;
      fw::parallel_scan(m, cut_state, fw::view<fw::WriteSequence<M>>(cut.inputs),
                        fw::view<fw::ReadSequence<M>>(cut.queries),
                        fw::view<fw::OutSequence<M>>(cut.outputs), pieces);
      CHECK(difference(cut.outputs, expected.outputs) <= 1e-12);
      CHECK(difference(cut_state, state) <= 1e-12);
    }
    auto early = m.empty_segment(), late = m.empty_segment();
    for (Index t = 0; t < 10; ++t) m.extend(early, std::get<0>(tokens(m, all, t)));
    for (Index t = 10; t < 23; ++t) m.extend(late, std::get<0>(tokens(m, all, t)));
    m.merge(early, late);
    auto merged = start;
    m.apply(early, merged);
    CHECK(difference(merged, state) <= 1e-12);
  }
}

/// A state is a value: a copy goes its own way, and a rollback repeats the same bits.
template <class M> void state_is_a_value(const M& m, bool positive) {
  fw::Random random(7);
  auto all = fw::testing::random_sequences(m, 9, random, positive);
  auto again = all;
  auto state = fw::testing::used_state(m, 6, random, positive);
  const auto snapshot = state;
  scan(m, state, all);
  const auto after = state;
  state = snapshot;
  CHECK(difference(state, snapshot) == 0);
  scan(m, state, again);
  CHECK(difference(state, after) == 0);
  CHECK(difference(again.outputs, all.outputs) == 0);
}

template <class M> void gradients_are_exact(const M& m, Index steps, bool positive) {
  const auto error = fw::testing::gradient_error(m, steps, 8, positive);
  INFO("worst in " << error.where);
  CHECK(error.worst <= 1e-10);
}

/// The generic path runs on Eigen's AutoDiffScalar, and its derivative is the complex step's.
template <class M> void takes_autodiff(const M& m, bool positive) {
  using A = Eigen::AutoDiffScalar<Eigen::Matrix<double, 1, 1>>;
  using Z = std::complex<double>;
  const auto with_autodiff = m.template cast<A>();
  const auto with_complex = m.template cast<Z>();
  const auto direction = [](auto one) {
    using T = decltype(one);
    if constexpr (std::is_same_v<T, A>)
      return A(0.3, 1, 0);
    else
      return T(0.3, 1e-30);
  };
  const auto run = [&](const auto& rule, auto kind) {
    using R = std::remove_cvref_t<decltype(rule)>;
    fw::Random random(9);
    auto all = fw::testing::random_sequences(rule, 6, random, positive);
    std::get<0>(fw::members(all.inputs))(0, 1) = direction(kind);
    auto state = fw::initial_state(rule);
    scan(rule, state, all);
    (void)sizeof(R);
    return std::get<0>(fw::members(all.outputs)).eval();
  };
  const auto a = run(with_autodiff, A());
  const auto z = run(with_complex, Z());
  double largest = 0;
  for (Index i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(z(i).imag() / 1e-30));
  for (Index i = 0; i < a.size(); ++i) {
    const double slope = a(i).derivatives().size() ? a(i).derivatives()[0] : 0;
    CHECK(std::abs(a(i).value() - z(i).real()) <= 1e-12);
    CHECK(std::abs(slope - z(i).imag() / 1e-30) <= 1e-11 * std::max(1.0, largest));
  }
}

/// float follows double.
template <class M> void float_follows_double(const M& m, bool positive) {
  const auto single = m.template cast<float>();
  using F = std::remove_cvref_t<decltype(single)>;
  fw::Random random(10), again(10);
  auto exact = fw::testing::random_sequences(m, 50, random, positive);
  auto rounded = fw::testing::random_sequences(single, 50, again, positive);
  auto state = fw::initial_state(m);
  fw::StateOf<F> float_state = fw::initial_state(single);
  scan(m, state, exact);
  scan(single, float_state, rounded);
  CHECK(difference(rounded.outputs, exact.outputs) <= 2e-5);
}

/// A sequence of the wrong size is refused, by name, and leaves the state as it was.
template <class M> void wrong_sizes_are_refused(const M& m, bool positive) {
  fw::Random random(11);
  auto all = fw::testing::random_sequences(m, 4, random, positive);
  auto state = fw::testing::used_state(m, 3, random, positive);
  const auto before = state;
  const auto refused = [&](auto& record, bool more_rows) {
    fw::for_each_member(
        [&](std::string_view name, auto& array) {
          const auto right = array;
          using Array = std::remove_cvref_t<decltype(array)>;
          const bool rows = more_rows && Array::RowsAtCompileTime == Eigen::Dynamic;
          array = Array::Zero(right.rows() + (rows ? 1 : 0), right.cols() + (rows ? 0 : 1));
          try {
            scan(m, state, all);
            // The first input says how long the sequence is: then another member is at fault.
            FAIL("accepted a wrong " << name);
          } catch (const std::invalid_argument& e) {
            const std::string what = e.what();
            CHECK(what.find(M::name) == 0);
            CHECK(what.find("expects") != std::string::npos);
            if (rows) CHECK(what.find(name) != std::string::npos);
          }
          array = right;
        },
        record);
  };
  for (const bool more_rows : {true, false}) {
    refused(all.inputs, more_rows);
    refused(all.queries, more_rows);
    refused(all.outputs, more_rows);
  }
  CHECK(difference(state, before) == 0);
}

/// Gradients of a random sequence: of its inputs, its queries and its initial state.
template <class M> auto random_gradients(const M& m, Index steps, bool positive) {
  fw::Random random(12);
  auto all = fw::testing::random_sequences(m, steps, random, positive);
  auto gradients = fw::testing::random_sequences(m, steps, random, positive);
  fw::for_each_leaf([&](auto& array) { random.fill(array, 1.0); }, gradients.outputs);
  auto state = fw::initial_state(m), dstate = fw::testing::used_state(m, 5, random, positive);
  fw::Checkpoints<M> kept;
  fw::scan(m, state, fw::view<fw::WriteSequence<M>>(all.inputs),
           fw::view<fw::ReadSequence<M>>(all.queries), fw::view<fw::OutSequence<M>>(all.outputs),
           kept);
  fw::backward(m, kept, fw::view<fw::WriteSequence<M>>(all.inputs),
               fw::view<fw::ReadSequence<M>>(all.queries),
               fw::view<fw::OutGradSequence<M>>(gradients.outputs), dstate,
               fw::view<fw::WriteGradSequence<M>>(gradients.inputs),
               fw::view<fw::ReadGradSequence<M>>(gradients.queries));
  return std::tuple(gradients.inputs, gradients.queries, dstate);
}

/// Fixed and dynamic sizes agree, and so do their gradients.
template <class Fixed, class Dyn>
void fixed_is_dynamic(const Fixed& fixed, const Dyn& dynamic, bool positive) {
  fw::Random random(12), again(12);
  auto a = fw::testing::random_sequences(fixed, 20, random, positive);
  auto b = fw::testing::random_sequences(dynamic, 20, again, positive);
  auto s = fw::initial_state(fixed);
  auto d = fw::initial_state(dynamic);
  scan(fixed, s, a);
  scan(dynamic, d, b);
  CHECK(difference(a.outputs, b.outputs) <= 1e-13);
  CHECK(difference(s, d) <= 1e-13);
  if constexpr (fw::Differentiable<Fixed>) {
    const auto [inputs, queries, state] = random_gradients(fixed, 20, positive);
    const auto [dynamic_inputs, dynamic_queries, dynamic_state] =
        random_gradients(dynamic, 20, positive);
    CHECK(difference(inputs, dynamic_inputs) <= 1e-12);
    CHECK(difference(queries, dynamic_queries) <= 1e-12);
    CHECK(difference(state, dynamic_state) <= 1e-12);
  }
}

/// All laws that one memory in double obeys by itself.
template <class M> void all(const M& m, bool positive = false) {
  static_assert(fw::assert_memory<M>());
  step_is_write_and_read(m, positive);
  scan_is_steps(m, positive);
  chunked_is_recurrent(m, positive);
  merged_is_recurrent(m, positive);
  state_is_a_value(m, positive);
  float_follows_double(m, positive);
  wrong_sizes_are_refused(m, positive);
}

/// The sizes at which every rule is tried.
inline const auto sizes = ::sizes({1, 3, 17, 63, 64, 65, 100}, {1, 3, 17, 65});

/// The laws for a rule that `make(d_v, d_k)` gives in dynamic sizes and `make_fixed<D>()` in fixed.
template <class Make> void at_all_sizes(const Make& make, bool positive = false) {
  for (const Index d : sizes) {
    INFO("d = " << d);
    all(make(d, d), positive);
  }
  for (const auto& [dv, dk] : {std::pair<Index, Index>{1, 5}, {5, 1}, {3, 17}, {65, 4}}) {
    INFO("d_v = " << dv << ", d_k = " << dk);
    all(make(dv, dk), positive);
    gradients_are_exact(make(dv, dk), 6, positive);
  }
  for (const Index d : {1, 3, 9}) {
    INFO("d = " << d);
    gradients_are_exact(make(d, d), 1, positive);
    gradients_are_exact(make(d, d), 17, positive);
  }
  takes_autodiff(make(3, 4), positive);
}

}  // namespace laws
