// A memory rule of your own in 60 lines: define it, check its gradients, time it.
#include <cstdio>
#include <fastweights/fastweights.hpp>
#include <fastweights/testing/gradient_check.hpp>
#include <fastweights/testing/speed.hpp>

/// The gated rule: forgets as much as it writes. W_t = (1 − β_t) W_{t−1} + β_t v_t k_tᵀ, y = W q.
template <class S> struct GatedRule {
  using Scalar = S;
  using Signature = fw::KeyValueBeta<fw::Dynamic, fw::Dynamic>;  // writes (k, v, β), reads q
  static constexpr std::string_view name = "GatedRule";

  template <class C> struct State {
    fw::mat<C, fw::Dynamic, fw::Dynamic> W;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<fw::Owned<S>>;

  fw::Index dk, dv;
  Signature signature() const { return {{.dk = dk, .dv = dv}}; }
  State<fw::Extents> state_extents() const { return {{dv, dk}}; }
  template <class T> GatedRule<T> cast() const { return {dk, dv}; }

  // These two make it a memory: fw::step, fw::scan and fw::FastWeightLayer take it.
  void write(OwnedState& s, const fw::WriteToken<GatedRule>& t) const {
    s.W *= S(1) - t.beta;
    s.W.noalias() += (t.beta * t.value) * t.key.transpose();
  }
  void read(const OwnedState& s, const fw::ReadToken<GatedRule>& t,
            fw::OutToken<GatedRule> y) const {
    y.output.noalias() = s.W * t.query;
  }

  // These two make it trainable: fw::backward takes it. s is the state before the write.
  void write_vjp(const OwnedState& s, const fw::WriteToken<GatedRule>& t, OwnedState& ds,
                 fw::WriteGradToken<GatedRule> d) const {
    d.value.noalias() += t.beta * (ds.W * t.key);
    d.key.noalias() += t.beta * (ds.W.transpose() * t.value);
    d.beta += ds.W.cwiseProduct(t.value * t.key.transpose() - s.W).sum();
    ds.W *= S(1) - t.beta;
  }
  void read_vjp(const OwnedState& s, const fw::ReadToken<GatedRule>& t,
                const fw::OutGradToken<GatedRule>& dy, OwnedState& ds,
                fw::ReadGradToken<GatedRule> d) const {
    ds.W.noalias() += dy.output * t.query.transpose();
    d.query.noalias() += s.W.transpose() * dy.output;
  }
};
static_assert(fw::assert_memory<GatedRule<float>>());  // a failure names the missing member

int main() {
  const GatedRule<float> memory{64, 64};
  auto state = fw::initial_state(memory);
  Eigen::MatrixXf K = Eigen::MatrixXf::Random(64, 100), V = K, Q = K, Y = K;  // a token a column
  const Eigen::VectorXf beta = Eigen::VectorXf::Constant(100, 0.1f);
  fw::scan(memory, state, {K, V, beta}, {Q}, {Y});
  const auto error = fw::testing::gradient_error(GatedRule<double>{.dk = 4, .dv = 5}, 20);
  std::printf("read |y| = %.2f; gradient error %.1e in %s; %.0f ns a token\n", Y.col(99).norm(),
              error.worst, error.where.c_str(), fw::testing::nanoseconds_per_token(memory));
  return error.worst <= 1e-10 ? 0 : 1;
}
