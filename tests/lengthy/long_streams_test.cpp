#include <cstdlib>
#include <fastweights/algorithms/parallel_scan.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/testing/sequences.hpp>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

/// \file
/// Float against double over streams of 10⁸ tokens. A sum over so many tokens is that over fewer
/// tokens times a power of two, so that the tests take seconds. To run all tokens and to print the
/// errors, in minutes:
///
///     FASTWEIGHTS_STREAM_TOKENS=100000000 fastweights_lengthy "[streams]" -s

namespace {

using fw::Dynamic;
using fw::Index;
template <class S> using Normaliser = fw::AttentionNormaliser<S>;
template <class S> using Mean = fw::LinearAttention<S, Dynamic, Dynamic, Normaliser<S>>;
template <class S> using NormalisedDelta = fw::DeltaRule<S, Dynamic, Dynamic, Normaliser<S>>;

constexpr double unit = 0x1p-24;  // the unit of rounding of float
constexpr Index block = 4096;

// The number of blocks if the environment asks for all tokens, else 0.
Index all_blocks() {
  const char* const tokens = std::getenv("FASTWEIGHTS_STREAM_TOKENS");
  return tokens == nullptr ? 0 : static_cast<Index>(std::atof(tokens)) / block;
}

// A block of tokens, which is repeated. Rules are read with the queries of the block.
template <class M, class Form> class Stream {
 public:
  Stream(const M& m, const Form& form, bool positive)
      : m_(m), form_(form), state_(fw::initial_state(m)) {
    fw::Random random(3);
    all_ = fw::testing::random_sequences(m, block, random, positive);
  }
  auto& inputs() { return all_.inputs; }
  auto& queries() { return all_.queries.query; }
  // The state after all tokens of the stream; with `sums`, most of them are those of the first
  // blocks many times.
  const auto& run_all(bool sums) {
    if (const Index blocks = all_blocks(); blocks > 0) return run(blocks);
    run(16);
    if (sums)
      fw::for_each_leaf(
          [](auto& leaf) {
            if constexpr (requires { leaf.array(); }) leaf.array() *= 2048;  // 1.3e8 tokens
          },
          state_);
    return run(240);
  }
  const auto& run(Index times) {
    for (Index i = 0; i < times; ++i)
      form_(m_, state_, fw::view<fw::WriteSequence<M>>(all_.inputs),
            fw::view<fw::ReadSequence<M>>(all_.queries),
            fw::view<fw::OutSequence<M>>(all_.outputs));
    return all_.outputs.output;
  }

 private:
  M m_;
  Form form_;
  fw::StateOf<M> state_;
  fw::testing::Sequences<M> all_;
};

const auto scan = [](const auto& m, auto& s, const auto& in, const auto& queries, const auto& out) {
  fw::scan(m, s, in, queries, out);
};
const auto chunked = [](const auto& m, auto& s, const auto& in, const auto& queries,
                        const auto& out) { fw::chunked_scan(m, s, in, queries, out); };
const auto parallel = [](const auto& m, auto& s, const auto& in, const auto& queries,
                         const auto& out) { fw::parallel_scan(m, s, in, queries, out, 2); };
const auto steps = [](const auto& m, auto& s, const auto& in, const auto& queries,
                      const auto& out) {
  using M = std::remove_cvref_t<decltype(m)>;
  for (Index t = 0; t < block; ++t)
    fw::step(m, s, fw::detail::token_at<fw::WriteToken<M>>(in, m.signature().write(), t),
             fw::detail::token_at<fw::ReadToken<M>>(queries, m.signature().read(), t),
             fw::detail::token_at<fw::OutToken<M>>(out, m.signature().out(), t));
};

// The error of the last block's outputs, in units of rounding of float, relative to the largest
// output.
template <class M, class Exact, class Form, class Change>
double error(const M& m, const Exact& exact, const Form& form, bool sums, const Change& change) {
  const bool positive = sums;
  Stream<M, Form> narrow(m, form, positive);
  change(narrow);
  Stream<Exact, decltype(scan)> wide(exact, scan, positive);
  fw::for_each_member([](auto, auto& to, const auto& from) { to = from.template cast<double>(); },
                      wide.inputs(), narrow.inputs());
  wide.queries() = narrow.queries().template cast<double>();
  const Eigen::MatrixXd expected = wide.run_all(sums);
  const auto difference = narrow.run_all(sums).template cast<double>() - expected;
  return largest_entry(difference) / largest_entry(expected) / unit;
}

// Keys in (0.05, 1) and values near 1, so that answers are means near 1.
const auto near_one = [](auto& stream) {
  stream.inputs().value.array() = 1 + 0.1f * stream.inputs().value.array();
};
// One key and one value, whose product is rounded in the same direction at every write.
const auto constant = [](auto& stream) {
  stream.inputs().key.setConstant(0.7f);
  stream.inputs().value.setConstant(0.1f);
  stream.queries().setConstant(0.3f);
};
const auto unit_keys = [](auto& stream) {
  stream.inputs().key.colwise().normalize();
  stream.queries().colwise().normalize();
};

TEST_CASE("the mean of 2^25 ones is 1", "[streams]") {
  const auto check = [](const auto& m, const auto& form) {
    Stream<std::remove_cvref_t<decltype(m)>, std::remove_cvref_t<decltype(form)>> stream(m, form,
                                                                                         true);
    stream.inputs().key.setOnes();
    stream.inputs().value.setOnes();
    stream.queries().setOnes();
    CHECK(largest_entry(stream.run((Index{1} << 25) / block).array() - 1) <= 2 * unit);
  };
  check(Mean<float>({.key_size = 1}), scan);
  check(fw::LinearAttention<float, 1, 1, Normaliser<float>>(), steps);
  check(fw::LinearAttention<float, 1, 8, Normaliser<float>>(), steps);  // by the kernel
}

TEST_CASE("normalised linear attention keeps counting in float", "[streams]") {
  const Mean<float> m({.key_size = 3, .value_size = 8});
  const Mean<double> exact({.key_size = 3, .value_size = 8});
  const auto check = [&](const auto& form, const auto& change) {
    CHECK(error(m, exact, form, true, change) <= 8);
  };
  check(scan, near_one);
  check(scan, constant);
  check(steps, near_one);
  check(chunked, near_one);
  check(chunked, constant);
  check(parallel, near_one);
}

TEST_CASE("deferred normalised linear attention keeps counting in float", "[streams]") {
  const fw::Deferred m(Mean<float>({.key_size = 3, .value_size = 8}));
  const Mean<double> exact({.key_size = 3, .value_size = 8});
  CHECK(error(m, exact, steps, true, near_one) <= 8);
  CHECK(error(m, exact, steps, true, constant) <= 8);
}

TEST_CASE("a compensated sum without a normaliser keeps counting in float", "[streams]") {
  using Sum = fw::LinearAttention<float, Dynamic, Dynamic, fw::NoNormaliser, fw::CompensatedSum>;
  CHECK(error(Sum({.key_size = 3, .value_size = 8}),
              fw::LinearAttention<double>({.key_size = 3, .value_size = 8}), scan, true,
              near_one) <= 8);
}

TEST_CASE("the normalised delta rule keeps counting in float", "[streams]") {
  const NormalisedDelta<float> m({.key_size = 3, .value_size = 8});
  const NormalisedDelta<double> exact({.key_size = 3, .value_size = 8});
  CHECK(error(m, exact, scan, true, near_one) <= 8);
  CHECK(error(m, exact, steps, true, near_one) <= 8);
}

// Rules that forget: old rounding errors fade like old writes.
TEST_CASE("rules that forget keep their precision in float", "[streams]") {
  const fw::Sizes<Dynamic, Dynamic> sizes{.key_size = 4, .value_size = 8};
  CHECK(error(fw::DeltaRule<float>(sizes), fw::DeltaRule<double>(sizes), scan, false, unit_keys) <=
        8);
  CHECK(error(fw::GatedDeltaRule<float>(sizes), fw::GatedDeltaRule<double>(sizes), scan, false,
              unit_keys) <= 8);
  CHECK(error(fw::HebbianMemory<float>(sizes), fw::HebbianMemory<double>(sizes, {0.95f, 0.5f}),
              scan, false, unit_keys) <= 8);
}

// |1 − β‖k‖²| = 1: rounding errors, such as that of ‖k‖², neither fade nor grow. The bound is
// stated at DeltaRule::chunk.
TEST_CASE("writes of one key with β = 2 stay within 4 T units of rounding", "[streams]") {
  constexpr Index d = 64;
  const fw::DeltaRule<float> m({.key_size = d});
  const fw::DeltaRule<double> exact({.key_size = d});
  const auto one_key = [](auto& stream) {
    const Eigen::VectorXf key = stream.inputs().key.col(0).normalized();
    stream.inputs().key.colwise() = key;
    stream.inputs().beta.setConstant(2);
  };
  const auto error = [&](const auto& form) {
    Stream<fw::DeltaRule<float>, std::remove_cvref_t<decltype(form)>> narrow(m, form, false);
    one_key(narrow);
    Stream<fw::DeltaRule<double>, decltype(scan)> wide(exact, scan, false);
    fw::for_each_member([](auto, auto& to, const auto& from) { to = from.template cast<double>(); },
                        wide.inputs(), narrow.inputs());
    const Eigen::MatrixXd expected = wide.run(1);
    return (narrow.run(1).template cast<double>() - expected).norm() / expected.norm() / unit;
  };
  CHECK(error(scan) <= 4 * block);
  CHECK(error(chunked) <= 4 * block);
}

}  // namespace
