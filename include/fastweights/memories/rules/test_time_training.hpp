#pragma once

#include <array>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/memories/rules/inner_models.hpp>
#include <fastweights/memories/rules/inner_objectives.hpp>
#include <utility>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, η, τ): the rate of the token's gradient, and the rate of the mini-batch as the
/// token sees it. Read q.
template <int Dk, int Dv> struct KeyValueRates : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> rate;        ///< η
    num<C> token_rate;  ///< τ
    static constexpr auto names = fw::names("key", "value", "rate", "token_rate");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength, Role::strength);
  };
  template <int NewDk> using with_keys_of = KeyValueRates<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {1, 1}}; }
};

/// TTT: the memory is a model, and a mini-batch of C tokens is a step of gradient descent on its
/// weights. The gradients of a mini-batch are those at its start, W_0.
///
///     D_t = D_{t−1} + η_t ∇ℓ_t(W_0), D = 0 at the start     W_t = W_0 − τ_t D_t
///     ℓ_t(W) = ½‖LN(f(k_t; W)) − (v_t − k_t)‖²              y_t = q_t + LN(f(q_t; W_t))
///
/// After C tokens W_t is the start of the next mini-batch. f is W k + b (`TttLinear`), or
/// W_2 GELU(W_1 k + b_1) + b_2 (`TttMlp`). LN is a layer norm whose weights are slow weights.
///
/// With Residual::answer in the objective the output is LN(z) + z with z = f(q_t; W_t), as in
/// flash-linear-attention, which has η = 1.
///
/// Shapes: k, q, v, y and the layer norm's weights d, η and τ 1; W d×d; W_1 h×d, W_2 d×h. The state
/// has the weights three times. Cost per token: 8 d² flops, with an MLP 18 h d. η and τ are in
/// [0, 2]; in the source η is about 1/d and τ about 1/i for the i-th token of a mini-batch. The
/// length of a step is at most τ Σ η ‖k‖ ‖∇_z ℓ‖, but ∇_z ℓ grows as 1/‖z − mean(z)‖ if z is nearly
/// constant, up to 1/√ε. For d = 1 outputs are q + b.
///
/// A TttMlp of zeros learns only b_2: start from other weights. The weights of the source's layers
/// are the initial state, which is learned. Throws std::invalid_argument when a size does not fit
/// or d_v is not d_k. Sun et al. 2024, arXiv 2407.04620, section 2; the tanh form of the GELU, with
/// the rounded derivative of the source's code in ∇ℓ.
template <class S, int Dk, int Dv, class Model, class Objective> class TestTimeTraining {
 public:
  using Scalar = S;
  using Signature = KeyValueRates<Dk, Dv>;
  static constexpr std::string_view name = "TestTimeTraining";
  static constexpr bool learns_initial_state = Model::zero_stays_zero;

  template <class C> struct State {
    typename Model::template Weights<C, Dk, Dv> weights;  ///< W_t
    typename Model::template Weights<C, Dk, Dv> start;    ///< W_0; unused if `tokens` is 0
    typename Model::template Weights<C, Dk, Dv> steps;    ///< D_t; unused if `tokens` is 0
    count<C> tokens;                                      ///< of the mini-batch, below C
    typename Objective::template Slow<C, Dv> slow;
    static constexpr auto names = fw::names("weights", "start", "steps", "tokens", "slow");
  };
  using OwnedState = State<Owned<S>>;

  /// Options of a TestTimeTraining.
  struct Options {
    Index batch = 1;           ///< C
    Model model = {};          ///< f
    Objective objective = {};  ///< the loss and the output
  };

  /// Throws std::invalid_argument when a size or an option is out of range.
  TestTimeTraining(Sizes<Dk, Dv> sizes, Options options)
      : signature_{{sizes.key_size, sizes.value_size}}, options_(options) {
    signature_.check(name);
    detail::check_size<Dynamic>(name, "the size of a mini-batch", options.batch);
    options.model.check(name);
    options.objective.check(name, sizes.key_size, sizes.value_size);
  }
  /// With sizes that are fixed at compile time.
  explicit TestTimeTraining(Options options) : TestTimeTraining({}, options) {}

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const auto w = options_.model.template extents<Dk, Dv>(signature_.dk, signature_.dv);
    return {w, w, w, {}, options_.objective.template extents<Dv>(signature_.dv)};
  }
  OwnedState initial_state() const {
    auto s = detail::zeros<OwnedState>(state_extents());
    Objective::start(s.slow);
    return s;
  }
  std::array<CountRange, 1> count_ranges(const OwnedState& s) const {
    return {{{"tokens", s.tokens, 0, options_.batch - 1}}};
  }
  template <class T> auto cast() const {
    return TestTimeTraining<T, Dk, Dv, Model, Objective>(
        signature_.sizes(), {options_.batch, options_.model, options_.objective});
  }

  void write(OwnedState& s, const WriteToken<TestTimeTraining>& t) const {
    if (s.tokens == 0) {
      s.start = s.weights;
      set_zero(s.steps);
    }
    options_.model.descend(s.start, t.key, t.rate, loss(s, t), s.steps);
    for_each_leaf(
        [&](auto& w, const auto& start, const auto& step) { w = start - t.token_rate * step; },
        s.weights, s.start, s.steps);
    s.tokens = (s.tokens + 1) % options_.batch;
  }
  void read(const OwnedState& s, const ReadToken<TestTimeTraining>& t,
            OutToken<TestTimeTraining> y) const {
    detail::answer(options_.model, options_.objective, s.weights, s.slow, t.query, y.output);
  }
  /// Takes the tokens of a mini-batch at once: see mini_batch.hpp.
  void scan(OwnedState& s, const WriteSequence<TestTimeTraining>& inputs,
            const ReadSequence<TestTimeTraining>& queries,
            OutSequence<TestTimeTraining> out) const requires detail::KernelScalar<S> {
    const Index total = queries.query.cols();
    for (Index t = 0; t < total;) {
      const Index n = std::min({options_.batch - s.tokens, total - t, detail::MiniBatch<S>::most});
      if (n >= 4) {
        scan_batch(s, inputs, queries, out, t, n);
      } else {
        for (Index i = t; i < t + n; ++i) {
          write(s, detail::token_at<WriteToken<TestTimeTraining>>(inputs, signature_.write(), i));
          read(s, detail::token_at<ReadToken<TestTimeTraining>>(queries, signature_.read(), i),
               detail::token_at<OutToken<TestTimeTraining>>(out, signature_.out(), i));
        }
      }
      t += n;
    }
  }
  void write_vjp(const OwnedState& s, const WriteToken<TestTimeTraining>& t, OwnedState& ds,
                 WriteGradToken<TestTimeTraining> dt) const {
    const bool first = s.tokens == 0;
    const auto& start = first ? s.weights : s.start;
    dt.token_rate -= t.rate * options_.model.along(start, t.key, loss(s, t), ds.weights);
    for_each_leaf(
        [&](auto& dw, auto& dstart, auto& dstep, const auto& step) {
          if (!first) dt.token_rate -= step.cwiseProduct(dw).sum();
          dstep -= t.token_rate * dw;
          dstart += dw;
        },
        ds.weights, ds.start, ds.steps, s.steps);
    const auto loss_vjp = [&](const auto& z, auto& d) {
      options_.objective.gradient_vjp(s.slow, t, z, d, ds.slow, dt);
    };
    options_.model.descend_vjp(start, t.key, t.rate, loss(s, t), loss_vjp, ds.steps, ds.start,
                               dt.key, dt.rate);
    set_zero(ds.weights);
    if (!first) return;
    std::swap(ds.weights, ds.start);
    set_zero(ds.steps);
  }
  void read_vjp(const OwnedState& s, const ReadToken<TestTimeTraining>& t,
                const OutGradToken<TestTimeTraining>& dy, OwnedState& ds,
                ReadGradToken<TestTimeTraining> dt) const {
    detail::answer_vjp<Dv>(options_.model, options_.objective, s.weights, s.slow, t.query,
                           dy.output, ds.weights, ds.slow, dt.query);
  }

 private:
  // Tokens first … first + n − 1, of one mini-batch.
  void scan_batch(OwnedState& s, const WriteSequence<TestTimeTraining>& inputs,
                  const ReadSequence<TestTimeTraining>& queries,
                  const OutSequence<TestTimeTraining>& out, Index first, Index n) const {
    using detail::columns_of;
    using Batch = detail::MiniBatch<S>;
    const Index dk = signature_.dk, dv = signature_.dv;
    S* const buffer =
        detail::thread_buffer<S, TestTimeTraining>(n * (options_.model.batch_rows(dk, dv) + n));
    Batch batch(n, s.tokens == 0, columns_of(inputs.token_rate).from(first), buffer);
    if (batch.begins()) s.start = s.weights;
    const auto keys = Batch::view(columns_of(inputs.key).from(first), dk, n),
               asked = Batch::view(columns_of(queries.query).from(first), dk, n);
    auto y = Batch::view(columns_of(out.output).from(first), dv, n);
    options_.model.batch(
        s.start, s.steps, batch, keys, asked,
        [&](Index t, auto z) {
          const auto token =
              detail::token_at<WriteToken<TestTimeTraining>>(inputs, signature_.write(), first + t);
          options_.objective.gradient(s.slow, token, z);
          z *= token.rate;
        },
        y);
    for (Index t = 0; t < n; ++t) {
      auto answer = y.col(t);
      options_.objective.output(s.slow, asked.col(t), answer);
    }
    const S rate = batch.rate(n - 1);
    for_each_leaf([&](auto& w, const auto& start, const auto& step) { w = start - rate * step; },
                  s.weights, s.start, s.steps);
    s.tokens = (s.tokens + n) % options_.batch;
  }
  // Replaces z by the gradient of the loss.
  auto loss(const OwnedState& s, const WriteToken<TestTimeTraining>& t) const {
    return [this, &s, &t](auto& z) { options_.objective.gradient(s.slow, t, z); };
  }

  Signature signature_;
  Options options_;
};

//| `TttLinear` | D += η ∇½‖LN(W_0 k + b_0) − (v − k)‖², W = W_0 − τ D in mini-batches from W_0
//|   | y = q + LN(W q + b) | 8 d² |  | Sun et al. 2024, 2407.04620
//| `TttMlp` | the same for W_2 GELU(W_1 k + b_1) + b_2 | the same | 18 h d |  | Sun et al.
//|   2024, 2407.04620
/// Test-time training of a linear model, with the layer norm and the residual of the published
/// code. Sun et al. 2024, arXiv 2407.04620, section 2.
template <class S, int D = Dynamic, class Objective = NormalisedObjective<>>
using TttLinear = TestTimeTraining<S, D, D, LinearModel<>, Objective>;

/// Test-time training of a net with one hidden layer.
template <class S, int D = Dynamic, int Hidden = Dynamic, class Objective = NormalisedObjective<>>
using TttMlp = TestTimeTraining<S, D, D, MlpModel<InnerGelu, Hidden>, Objective>;

}  // namespace fw
