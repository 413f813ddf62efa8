#include <cstdlib>
#include <fastweights/any_memory/table.hpp>
#include <fastweights/testing/any_sequences.hpp>
#include <functional>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

/// \file
/// Float against double over streams of 10⁸ tokens. A sum over so many tokens is that over fewer
/// tokens times a power of two, so that the tests take seconds. To run all tokens and to print the
/// errors, in minutes:
///
///     FASTWEIGHTS_STREAM_TOKENS=100000000 fastweights_lengthy "[streams]" -s

namespace {

using Eigen::MatrixXd;
using fw::Index;

constexpr double unit = 0x1p-24;  // the unit of rounding of float
constexpr Index block = 4096;

enum class Form { scan, steps, chunked, parallel };

// The number of blocks if the environment asks for all tokens, else 0.
Index all_blocks() {
  const char* const tokens = std::getenv("FASTWEIGHTS_STREAM_TOKENS");
  return tokens == nullptr ? 0 : static_cast<Index>(std::atof(tokens)) / block;
}

// Every number of a record times 2048, but not its counters.
void multiply(const fw::detail::Object& record) {
  fw::detail::visit_leaves(&record, 1,
                           [](const fw::detail::Leaf* leaf, const fw::detail::LeafPath&) {
                             if (leaf->scalar == fw::detail::ScalarKind::float32)
                               leaf->entries<float>() *= 2048;
                             if (leaf->scalar == fw::detail::ScalarKind::float64)
                               leaf->entries<double>() *= 2048;
                           });
}

// A block of tokens, which is repeated.
template <class S> class Stream {
 public:
  Stream(const fw::AnyMemory<S>& m, bool positive) : m_(m), state_(m.initial_state()) {
    fw::Random random(3);
    all = fw::testing::random_sequences(m, block, random, positive);
  }
  // The outputs of the last block of the stream; with `sums`, most of its tokens are those of the
  // first blocks many times.
  MatrixXd run_all(Form form, bool sums) {
    if (const Index blocks = all_blocks(); blocks > 0) return run(form, blocks);
    run(form, 16);
    if (sums) multiply(state_.object());  // 1.3e8 tokens
    return run(form, 240);
  }
  MatrixXd run(Form form, Index times) {
    for (Index i = 0; i < times; ++i) run(form);
    return all.outputs["output"].template cast<double>();
  }

  fw::testing::AnySequences<S> all;

 private:
  void run(Form form) {
    const auto w = all.inputs.views(), r = all.queries.views();
    const auto y = all.outputs.template views<S>();
    if (form == Form::scan) m_.scan(state_, w, r, y);
    if (form == Form::chunked) m_.chunked_scan(state_, w, r, y);
    if (form == Form::parallel) m_.parallel_scan(state_, w, r, y, 2);
    for (Index t = 0; form == Form::steps && t < block; ++t)
      m_.step(state_, all.inputs.part(t, 1), all.queries.part(t, 1),
              all.outputs.template part<S>(t, 1));
  }

  fw::AnyMemory<S> m_;
  fw::AnyState<S> state_;
};

using Inputs = fw::testing::AnySequences<float>;
using Change = std::function<void(Inputs&)>;

// The error of the last block's outputs, in units of rounding of float, relative to the largest
// output. `exact` is the memory in double.
double error(const char* name, const fw::MemoryOptions& options, Form form, bool sums,
             const Change& change, const char* exact = nullptr) {
  Stream<float> narrow(fw::make_memory<float>(name, options), sums);
  Stream<double> wide(fw::make_memory<double>(exact ? exact : name, options), sums);
  change(narrow.all);
  wide.all = narrow.all.cast<double>();
  const MatrixXd expected = wide.run_all(Form::scan, sums);
  return largest_entry(narrow.run_all(form, sums) - expected) / largest_entry(expected) / unit;
}

// Keys in (0.05, 1) and values near 1, so that answers are means near 1.
void near_one(Inputs& all) { all.inputs["value"].array() = 1 + 0.1f * all.inputs["value"].array(); }
// One key and one value, whose product is rounded in the same direction at every write.
void constant(Inputs& all) {
  all.inputs["key"].setConstant(0.7f);
  all.inputs["value"].setConstant(0.1f);
  all.queries["query"].setConstant(0.3f);
}
void unit_keys(Inputs& all) {
  all.inputs["key"].colwise().normalize();
  all.queries["query"].colwise().normalize();
}

TEST_CASE("the mean of 2^25 ones is 1", "[streams]") {
  const auto check = [](Index dv, Form form) {
    Stream<float> stream(fw::make_memory<float>("NormalisedLinearAttention", {1, dv}), true);
    for (auto* record : {&stream.all.inputs, &stream.all.queries})
      for (auto& matrix : record->matrices) matrix.setOnes();
    CHECK(largest_entry(stream.run(form, (Index{1} << 25) / block).array() - 1) <= 2 * unit);
  };
  check(1, Form::scan);
  check(1, Form::steps);
  check(8, Form::steps);  // by the kernel
}

TEST_CASE("normalised linear attention keeps counting in float", "[streams]") {
  const auto check = [](Form form, const Change& change) {
    CHECK(error("NormalisedLinearAttention", {3, 8}, form, true, change) <= 8);
  };
  check(Form::scan, near_one);
  check(Form::scan, constant);
  check(Form::steps, near_one);
  check(Form::chunked, near_one);
  check(Form::chunked, constant);
  check(Form::parallel, near_one);
}

TEST_CASE("deferred normalised linear attention keeps counting in float", "[streams]") {
  for (const auto change : {near_one, constant})
    CHECK(error("DeferredNormalisedLinearAttention", {3, 8}, Form::steps, true, change,
                "NormalisedLinearAttention") <= 8);
}

TEST_CASE("a compensated sum without a normaliser keeps counting in float", "[streams]") {
  CHECK(error("CompensatedLinearAttention", {3, 8}, Form::scan, true, near_one,
              "LinearAttention") <= 8);
}

TEST_CASE("the normalised delta rule keeps counting in float", "[streams]") {
  for (const Form form : {Form::scan, Form::steps})
    CHECK(error("NormalisedDeltaRule", {3, 8}, form, true, near_one) <= 8);
}

// Rules that forget: old rounding errors fade like old writes.
TEST_CASE("rules that forget keep their precision in float", "[streams]") {
  CHECK(error("DeltaRule", {4, 8}, Form::scan, false, unit_keys) <= 8);
  CHECK(error("GatedDeltaRule", {4, 8}, Form::scan, false, unit_keys) <= 8);
  // Decay and rate are numbers of float, so that both memories have the same.
  CHECK(error("HebbianMemory", {4, 8, {{"decay", 0.95f}, {"rate", 0.5f}}}, Form::scan, false,
              unit_keys) <= 8);
}

// |1 − β‖k‖²| = 1: rounding errors, such as that of ‖k‖², neither fade nor grow. The bound is
// stated at DeltaRule::chunk.
TEST_CASE("writes of one key with β = 2 stay within 4 T units of rounding", "[streams]") {
  constexpr Index d = 64;
  for (const Form form : {Form::scan, Form::chunked}) {
    Stream<float> narrow(fw::make_memory<float>("DeltaRule", {d}), false);
    Stream<double> wide(fw::make_memory<double>("DeltaRule", {d}), false);
    auto& key = narrow.all.inputs["key"];
    key.colwise() = Eigen::VectorXf(key.col(0).normalized());
    narrow.all.inputs["beta"].setConstant(2);
    wide.all = narrow.all.cast<double>();
    const MatrixXd expected = wide.run(Form::scan, 1);
    CHECK((narrow.run(form, 1) - expected).norm() / expected.norm() / unit <= 4 * block);
  }
}

}  // namespace
