// limit: 8
// A user's own rule in a layer, and the check of its gradients: see docs/adding_a_rule.md.
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/testing/gradient_check.hpp>

/// Forgets as much as it writes: W_t = (1 − β_t) W_{t−1} + β_t v_t k_tᵀ, y = W q.
template <class S> struct GatedRule {
  using Scalar = S;
  using Signature = fw::KeyValueBeta<fw::Dynamic, fw::Dynamic>;
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

  void write(OwnedState& s, const fw::WriteToken<GatedRule>& t) const {
    s.W *= S(1) - t.beta;
    s.W.noalias() += (t.beta * t.value) * t.key.transpose();
  }
  void read(const OwnedState& s, const fw::ReadToken<GatedRule>& t,
            fw::OutToken<GatedRule> y) const {
    y.output.noalias() = s.W * t.query;
  }
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
static_assert(fw::assert_memory<GatedRule<float>>());

int main() {
  using Layer = fw::FastWeightLayer<GatedRule<float>>;
  Layer layer({.d_model = 8, .heads = 2}, GatedRule<float>{.dk = 4, .dv = 4});
  fw::Random random(1);
  fw::initialise(layer, random);
  Layer::Trace trace;
  auto state = layer.initial_state();
  const Eigen::MatrixXf x = Eigen::MatrixXf::Random(8, 20);
  Eigen::MatrixXf y(8, 20), dx(8, 20);
  layer.forward(state, x, y, trace, fw::Pass::train);
  Layer gradient = fw::zero_gradient(layer);
  layer.backward(x, trace, y, dx, gradient);
  const auto error = fw::testing::gradient_error(GatedRule<double>{.dk = 4, .dv = 5}, 20);
  return dx.allFinite() && error.worst <= 1e-10 ? 0 : 1;
}
