// Scans and steps of rules beside the operators of ggml, in turns in one process: float, 8 heads,
// one thread, CLOCK_THREAD_CPUTIME_ID, the least of all rounds. `script/bench rivals --ggml FOLDER`
// compiles it.
//
//     ggml_rivals [ROUNDS]

#include <ggml-cpu.h>
#include <ggml.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>
#include <fastweights/testing/sequences.hpp>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace {

using Eigen::Dynamic, Eigen::Index, Eigen::MatrixXf;
constexpr Index heads = 8;

double thread_time() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) * 1e9 + double(t.tv_nsec);
}
template <class F> double nanoseconds(const F& f) {
  const double begin = thread_time();
  f();
  return thread_time() - begin;
}

// The heads of a rule, with the same kinds of numbers for every rule: keys of length 1, decays in
// [0.9, 0.98), strengths in [0, 1).
template <class M> class Ours {
 public:
  Ours(Index d, Index steps) : memory_({.key_size = d}) {
    fw::Random random(7);
    for (Index h = 0; h < heads; ++h) {
      auto& all = sequences.emplace_back(fw::testing::random_sequences(memory_, steps, random));
      all.inputs.key.colwise().normalize();
      const auto uniform = [&](float from, float size) {
        return [&, from, size] { return from + size * float(random.uniform()); };
      };
      auto& in = all.inputs;
      in.decay = MatrixXf::NullaryExpr(in.decay.rows(), steps, uniform(0.9f, 0.08f));
      if constexpr (requires { in.beta; }) in.beta = MatrixXf::NullaryExpr(1, steps, uniform(0, 1));
      if constexpr (requires { in.removal; }) {
        in.removal = -0.5f * in.decay.cwiseProduct(in.key);
        in.replacement = in.key;
      }
      outputs.push_back(MatrixXf::Zero(d, steps));
      states_.push_back(fw::initial_state(memory_));
    }
  }
  void clear() {
    for (auto& state : states_) state = fw::initial_state(memory_);
  }
  void run() {
    for (std::size_t h = 0; h < sequences.size(); ++h) {
      const auto in = fw::view<fw::WriteSequence<M>>(sequences[h].inputs);
      const auto queries = fw::view<fw::ReadSequence<M>>(sequences[h].queries);
      const fw::OutSequence<M> out{outputs[h]};
      const auto signature = memory_.signature();
      if (outputs[h].cols() > 1)
        fw::scan(memory_, states_[h], in, queries, out);
      else
        fw::step(memory_, states_[h],
                 fw::detail::token_at<fw::WriteToken<M>>(in, signature.write(), 0),
                 fw::detail::token_at<fw::ReadToken<M>>(queries, signature.read(), 0),
                 fw::detail::token_at<fw::OutToken<M>>(out, signature.out(), 0));
    }
  }

  std::vector<decltype(fw::testing::random_sequences(std::declval<M>(), 1,
                                                     std::declval<fw::Random&>()))>
      sequences;
  std::vector<MatrixXf> outputs;

 private:
  M memory_;
  std::vector<fw::StateOf<M>> states_;
};

// A graph of ggml with one operator. Its outputs come first in its result, d×heads×steps.
class Theirs {
 public:
  Theirs() : context_(ggml_init({std::size_t(2) << 30, nullptr, false})) {
    ggml_threadpool_params one = ggml_threadpool_params_default(1);
    pool_ = ggml_threadpool_new(&one);
  }
  ~Theirs() {
    ggml_threadpool_free(pool_);
    ggml_free(context_);
  }
  Theirs(const Theirs&) = delete;
  Theirs& operator=(const Theirs&) = delete;

  ggml_context* context() { return context_; }
  ggml_tensor* zeros(Index a, Index b, Index c = 1) {
    ggml_tensor* x = ggml_new_tensor_3d(context_, GGML_TYPE_F32, a, b, c);
    std::fill_n(static_cast<float*>(x->data), ggml_nelements(x), 0.0f);
    return x;
  }
  // rows×heads×steps, with the numbers of matrix_of(head)
  template <class F> ggml_tensor* tensor(const F& matrix_of) {
    const MatrixXf first = matrix_of(std::size_t(0));
    ggml_tensor* x = zeros(first.rows(), heads, first.cols());
    for (Index h = 0; h < heads; ++h) {
      const MatrixXf own = matrix_of(std::size_t(h));
      for (Index t = 0; t < own.cols(); ++t)
        std::copy_n(own.col(t).data(), own.rows(),
                    static_cast<float*>(x->data) + (t * heads + h) * own.rows());
    }
    return x;
  }
  void finish(ggml_tensor* result) {
    result_ = result;
    graph_ = ggml_new_graph(context_);
    ggml_build_forward_expand(graph_, result);
    plan_ = ggml_graph_plan(graph_, 1, pool_);
    work_.resize(plan_.work_size);
    plan_.work_data = work_.data();
  }
  void run() { ggml_graph_compute(graph_, &plan_); }
  // The largest difference from ours, over the largest entry.
  double error(const std::vector<MatrixXf>& outputs, float scale) const {
    double worst = 0, largest = 0;
    const auto* data = static_cast<const float*>(result_->data);
    for (Index h = 0; h < heads; ++h)
      for (Index t = 0; t < outputs[0].cols(); ++t) {
        const auto own = outputs[std::size_t(h)].col(t);
        const Eigen::Map<const Eigen::VectorXf> other(data + (t * heads + h) * own.size(),
                                                      own.size());
        worst = std::max(worst, double((scale * other - own).cwiseAbs().maxCoeff()));
        largest = std::max(largest, double(own.cwiseAbs().maxCoeff()));
      }
    return worst / largest;
  }

 private:
  ggml_context* context_;
  ggml_threadpool* pool_;
  ggml_tensor* result_ = nullptr;
  ggml_cgraph* graph_ = nullptr;
  ggml_cplan plan_{};
  std::vector<std::uint8_t> work_;
};

// What ggml takes for a graph of one operator that does next to nothing.
double graph_overhead() {
  Theirs empty;
  empty.finish(ggml_scale(empty.context(), empty.zeros(1, 1), 2));
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 2000; ++i) least = std::min(least, nanoseconds([&] { empty.run(); }));
  return least;
}

int rounds = 7;
double overhead = 0;

// Prints a row: add(theirs, ours) makes the operator and returns the scale of its outputs.
template <class M, class Add>
bool compare(const char* name, const char* operator_name, Index d, Index steps, const Add& add) {
  Ours<M> ours(d, steps);
  Theirs theirs;
  const float scale = add(theirs, ours);
  ours.run();
  theirs.run();
  const double error = theirs.error(ours.outputs, scale);
  const int repeats = steps == 1 ? 200 : 1;
  double own = std::numeric_limits<double>::infinity(), other = own;
  for (int i = 0; i < rounds; ++i)
    for (int k = 0; k < repeats; ++k) {
      if (steps > 1) ours.clear();
      own = std::min(own, nanoseconds([&] { ours.run(); }));
      other = std::min(other, nanoseconds([&] { theirs.run(); }) - overhead);
    }
  const double tokens = double(steps) * double(heads);
  std::printf("| %s | %s | %s | %ld | %.0f | %.0f | %.2f | %.0e |\n", name, operator_name,
              steps == 1 ? "step" : "scan", long(d), own / tokens, other / tokens, other / own,
              error);
  std::fflush(stdout);
  return error <= 1e-4;
}

template <template <int, int> class Inputs>
bool compare_delta(const char* name, Index d, Index steps) {
  using M = fw::GatedDeltaRule<float, Dynamic, Dynamic, Inputs>;
  return compare<M>(name, "gated_delta_net", d, steps, [&](Theirs& t, const Ours<M>& ours) {
    const auto& all = ours.sequences;
    const auto q = t.tensor([&](auto h) { return all[h].queries.query; }),
               k = t.tensor([&](auto h) { return all[h].inputs.key; }),
               v = t.tensor([&](auto h) { return all[h].inputs.value; }),
               g = t.tensor([&](auto h) { return MatrixXf(all[h].inputs.decay.array().log()); }),
               beta = t.tensor([&](auto h) { return MatrixXf(all[h].inputs.beta); });
    t.finish(ggml_gated_delta_net(t.context(), q, k, v, g, beta, t.zeros(d, d, heads), 1));
    return std::sqrt(float(d));  // its outputs are divided by √d
  });
}

bool compare_low_rank(Index d, Index steps) {
  using M = fw::LowRankRule<float>;
  return compare<M>("RWKV-7", "rwkv_wkv7", d, steps, [&](Theirs& t, const Ours<M>& ours) {
    const auto& all = ours.sequences;
    const auto q = t.tensor([&](auto h) { return all[h].queries.query; }),
               w = t.tensor([&](auto h) { return all[h].inputs.decay; }),
               k = t.tensor([&](auto h) { return all[h].inputs.key; }),
               v = t.tensor([&](auto h) { return all[h].inputs.value; }),
               a = t.tensor([&](auto h) { return all[h].inputs.removal; }),
               b = t.tensor([&](auto h) { return all[h].inputs.replacement; });
    t.finish(ggml_rwkv_wkv7(t.context(), q, w, k, v, a, b, t.zeros(d * d * heads, 1)));
    return 1.0f;
  });
}

bool compare_vector_decay(Index d, Index steps) {
  using M = fw::GatedLinearAttention<float>;
  return compare<M>("GLA", "gated_linear_attn", d, steps, [&](Theirs& t, const Ours<M>& ours) {
    const auto& all = ours.sequences;
    const auto k = t.tensor([&](auto h) { return all[h].inputs.key; }),
               v = t.tensor([&](auto h) { return all[h].inputs.value; }),
               q = t.tensor([&](auto h) { return all[h].queries.query; }),
               g = t.tensor([&](auto h) { return all[h].inputs.decay; });
    t.finish(ggml_gated_linear_attn(t.context(), k, v, q, g, t.zeros(d * d * heads, 1), 1));
    return 1.0f;
  });
}

bool compare_mamba2(Index d, Index steps) {
  using M = fw::GatedLinearAttention<float, Dynamic, Dynamic, fw::KeyValueDecay>;
  return compare<M>("Mamba-2", "ssm_scan", d, steps, [&](Theirs& t, const Ours<M>& ours) {
    const auto& all = ours.sequences;
    // With A = −1 its decay is exp(−Δ) and its value Δ x, and Δ is the softplus of what it is
    // given: in float, so that Δ has an error of 2^−24 or more.
    const auto time = [&](auto h) -> Eigen::MatrixXd {
      return -all[h].inputs.decay.template cast<double>().array().log();
    };
    const auto x = t.tensor([&](auto h) -> MatrixXf {
      const Eigen::MatrixXd value = all[h].inputs.value.template cast<double>();
      return (value.array().rowwise() / time(h).row(0).array()).template cast<float>();
    }),
               dt = t.tensor([&](auto h) -> MatrixXf {
                 return (time(h).array().exp() - 1).log().template cast<float>();
               }),
               B = t.tensor([&](auto h) { return all[h].inputs.key; }),
               C = t.tensor([&](auto h) { return all[h].queries.query; });
    ggml_tensor* A = t.zeros(1, heads);
    std::fill_n(static_cast<float*>(A->data), heads, -1.0f);
    ggml_tensor* ids = ggml_new_tensor_1d(t.context(), GGML_TYPE_I32, 1);
    static_cast<std::int32_t*>(ids->data)[0] = 0;
    ggml_tensor* each = ggml_reshape_2d(t.context(), dt, heads, steps);
    t.finish(ggml_ssm_scan(t.context(), t.zeros(d, d, heads), x, each, A, B, C, ids, 1));
    return 1.0f;
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) rounds = std::max(1, std::atoi(argv[1]));
  ggml_cpu_init();
  overhead = graph_overhead();
  std::printf(
      "ggml %s; ns a token and head, float, %ld heads, T = 4096 or 1, one thread; %.0f ns of a "
      "graph are\n"
      "subtracted from ggml's.\n\n"
      "| rule | operator | | d | ours | ggml | over ours | difference |\n"
      "|---|---|---|---:|---:|---:|---:|---:|\n",
      ggml_version(), long(heads), overhead);
  bool equal = true;
  for (const Index d : {64, 128})
    for (const Index steps : {4096, 1}) {
      equal &= compare_delta<fw::KeyValueBetaDecay>("gated delta", d, steps);
      equal &= compare_delta<fw::KeyValueBetaVectorDecay>("Kimi", d, steps);
      equal &= compare_low_rank(d, steps);
      equal &= compare_vector_decay(d, steps);
      equal &= compare_mamba2(d, steps);
    }
  if (!equal) std::puts("Some outputs differ.");
  return equal ? 0 : 1;
}
