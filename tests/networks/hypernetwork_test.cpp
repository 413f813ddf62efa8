#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/any_memory/table/gated_deltas.hpp>
#include <fastweights/any_memory/table/sums.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/tanh.hpp>
#include <fastweights/layers/hypernetwork.hpp>
#include <fastweights/math/random.hpp>

#include "networks/operation_checks.hpp"

using Catch::Matchers::ContainsSubstring;
using fw::Index;
using operation_checks::random_matrix;

namespace {

using Sum = fw::LinearAttention<double>;
using Delta = fw::DeltaRule<double>;
using Net = fw::Hypernetwork<double>;
using Tanh = fw::Tanh;

Eigen::MatrixXd run(const operation_checks::Net& block, const Eigen::MatrixXd& x) {
  auto state = block.initial_state();
  operation_checks::Net::Trace trace;
  return operation_checks::run(block, state, x, trace);
}

// A hypernetwork and its inputs, of random sizes.
struct Problem {
  std::vector<Eigen::MatrixXd> theta;
  Eigen::MatrixXd a;
  Eigen::VectorXd x, z;

  explicit Problem(fw::Random& random) {
    const auto size = [&] { return static_cast<Index>(1 + random.below(9)); };
    const Index d = size(), h = size();
    theta.resize(static_cast<std::size_t>(size()));
    for (auto& each : theta) each = random_matrix(h, d, random);
    a = random_matrix(size(), h, random);
    x = random_matrix(d, 1, random);
    z = random_matrix(static_cast<Index>(theta.size()), 1, random);
  }
};

// The equation, entry by entry.
template <class F> Eigen::VectorXd reference(const Problem& p, const F& f) {
  Eigen::VectorXd y = Eigen::VectorXd::Zero(p.a.rows());
  for (Index i = 0; i < p.a.cols(); ++i) {
    double u = 0;
    for (Index m = 0; m < p.z.size(); ++m)
      for (Index j = 0; j < p.x.size(); ++j)
        u += p.z[m] * p.theta[static_cast<std::size_t>(m)](i, j) * p.x[j];
    y += p.a.col(i) * f.value(u);
  }
  return y;
}

// In full and causal form, with sum rule and delta rule.
template <class F> void check_exact(const Problem& p, const F& f) {
  const Eigen::VectorXd target = reference(p, f);
  const double limit = 1e-12 * (1 + target.cwiseAbs().maxCoeff());
  const auto check_block = [&](const Net& net, const auto& memory) {
    const auto Y = run(net.template block<F>(memory), net.tokens(p.x, p.z));
    CHECK(largest_entry(net.output(Y) - target) <= limit);
  };
  const auto all_memories = [&](const Net& net) {
    check_block(net, Sum({.key_size = 1, .value_size = net.hidden()}));
    check_block(net, Delta({.key_size = 1, .value_size = net.hidden()}));
    check_block(net, fw::DeltaRule<double, -1, -1, fw::NoNormaliser, fw::KeyValueVectorBeta>(
                         {.key_size = 1, .value_size = net.hidden()}));
  };
  const Net net(p.theta, p.a);
  all_memories(net);
  all_memories(Net(p.theta, p.a, {.causal = false}));
  all_memories(Net(p.theta, p.a, {.causal = false, .order = fw::TokenOrder::z_first}));
  CHECK(largest_entry(net.evaluate<F>(p.x, p.z) - target) <= limit);
}

struct Saturation {  // the identity for small values
  template <class S> S value(const S& x) const { return x > 5 ? S(5) : x < -5 ? S(-5) : x; }
  template <class S> S derivative(const S& x) const { return S(x >= -5 && x <= 5); }
};
struct Threshold {  // the identity for large values
  template <class S> S value(const S& x) const { return x * x < S(0.01) ? S(0) : x; }
  template <class S> S derivative(const S& x) const { return S(!(x * x < S(0.01))); }
};

struct Cosine {  // σ(0) is not 0
  template <class S> S value(const S& x) const {
    using std::cos;
    return cos(x);
  }
  template <class S> S derivative(const S& x) const {
    using std::sin;
    return -sin(x);
  }
};

Net a_net(Index h = 3) {
  return Net({Eigen::MatrixXd::Ones(h, 2), Eigen::MatrixXd::Ones(h, 2)},
             Eigen::MatrixXd::Ones(4, h));
}

template <class M> void refuses(const M& memory, const std::string& reason) {
  CHECK_THROWS_WITH(
      a_net().check_memory(memory),
      ContainsSubstring("Hypernetwork: cannot be built with ") && ContainsSubstring(reason));
}

}  // namespace

TEST_CASE("hypernetwork: the block computes A σ(ω(z) x), full and causal, by sum and delta rule",
          "[hypernetwork]") {
  fw::Random random(1);
  for (int i = 0; i < 40; ++i) {
    const Problem p(random);
    INFO("d " << p.x.size() << " M " << p.z.size() << " h " << p.a.cols() << " o " << p.a.rows());
    check_exact(p, fw::Tanh{});
    check_exact(p, fw::Relu{});
    check_exact(p, fw::Sigmoid{});
    check_exact(p, fw::Identity{});
    check_exact(p, Cosine{});
  }
}

TEST_CASE("hypernetwork: x and z stay in their blocks", "[hypernetwork]") {
  fw::Random random(2);
  const Problem p(random);
  const Net net(p.theta, p.a);
  const Eigen::MatrixXd E = net.tokens(p.x, p.z), Y = run(net.block<Tanh>(), E);
  CHECK(Y.topRows(net.inputs() + net.programs()) == E.topRows(net.inputs() + net.programs()));
}

TEST_CASE("hypernetwork: streaming equals one pass", "[hypernetwork]") {
  fw::Random random(3);
  const Problem p(random);
  const Net net(p.theta, p.a);
  const auto block = net.block<Tanh>(Delta({.key_size = 1, .value_size = net.hidden()}));
  const Eigen::MatrixXd E = net.tokens(p.x, p.z);
  Eigen::MatrixXd Y(E.rows(), 2);
  auto state = block.initial_state();
  operation_checks::Net::Trace trace;
  for (Index t = 0; t < 2; ++t) block.forward(state, E.col(t), Y.col(t), trace);
  operation_checks::check_equal(Y, run(block, E), 1e-14);
}

TEST_CASE("hypernetwork: unsupported memories are refused with the reason", "[hypernetwork]") {
  using Normaliser = fw::AttentionNormaliser<double>;
  using Identity = fw::IdentityMap;
  refuses(fw::KeyValueCache<double>({.key_size = 1, .value_size = 3}, {.capacity = 2}), "softmax");
  refuses(fw::LinearAttention<double, -1, -1, Normaliser>({.key_size = 1, .value_size = 3}),
          "attention normalisation");
  refuses(fw::DeltaRule<double, -1, -1, Normaliser>({.key_size = 1, .value_size = 3}),
          "attention normalisation");
  refuses(fw::FeatureMapped<Sum, fw::EluPlusOne>(Sum({.key_size = 1, .value_size = 3}), 1),
          "ELU+1");
  refuses(fw::FeatureMapped<Sum, fw::SumNormalise>(Sum({.key_size = 1, .value_size = 3}), 1),
          "sum normalisation");
  refuses(fw::FeatureMapped<Delta, fw::Chain<Identity, fw::SumNormalise>>(
              Delta({.key_size = 1, .value_size = 3}), 1),
          "sum normalisation");
  refuses(fw::FeatureMapped<Sum, fw::SoftmaxMap>(Sum({.key_size = 1, .value_size = 3}), 1),
          "a softmax of keys and queries");
  refuses(fw::FeatureMapped<Sum, fw::L2Normalise>(Sum({.key_size = 1, .value_size = 3}), 1),
          "L2 normalisation");
  refuses(fw::FeatureMapped<Sum, fw::TanhMap>(Sum({.key_size = 1, .value_size = 3}), 1),
          "not z times the written value");
  refuses(fw::HebbianMemory<double>({.key_size = 1, .value_size = 3}),
          "HebbianMemory: its output is not z times");
  refuses(fw::GatedDeltaRule<double>({.key_size = 1, .value_size = 3}),
          "GatedDeltaRule: the value of the first token decays");
  // Exact for values from 0 to 1, but not for negative values.
  using Clipped = fw::Programmer1991<double, fw::Dynamic, fw::Dynamic, fw::Relu>;
  CHECK_THROWS_WITH(a_net(1).check_memory(Clipped({.key_size = 1})),
                    ContainsSubstring("its output is not z times"));
  refuses(fw::Programmer1991<double, fw::Dynamic, fw::Dynamic, Saturation>(
              {.key_size = 1, .value_size = 3}),
          "not z times");
  refuses(fw::Programmer1991<double, fw::Dynamic, fw::Dynamic, Threshold>(
              {.key_size = 1, .value_size = 3}),
          "not z times");
  const auto order = fw::TokenOrder::z_first;
  const Eigen::MatrixXd one = Eigen::MatrixXd::Ones(1, 1);
  CHECK_THROWS_WITH(Net({one}, one, {.order = order}),
                    ContainsSubstring("the order e2, e1 under a causal mask"));
  CHECK_THROWS_AS(Net({one}, one, {.order = order}), std::invalid_argument);
  // A map or a rate that changes nothing is accepted.
  CHECK_NOTHROW(a_net().check_memory(
      fw::FeatureMapped<Sum, Identity>(Sum({.key_size = 1, .value_size = 3}), 1)));
  CHECK_NOTHROW(a_net().check_memory(
      fw::HebbianMemory<double>({.key_size = 1, .value_size = 3}, {1.0, 1.0})));
}

TEST_CASE("hypernetwork: the refused order gives a wrong output", "[hypernetwork]") {
  // In causal form the weights of the full form read before the first write.
  fw::Random random(4);
  const Problem p(random);
  const Net full(p.theta, p.a, {.causal = false, .order = fw::TokenOrder::z_first});
  const auto block = Net(p.theta, p.a).block<Tanh>();
  const Eigen::VectorXd output = full.output(run(block, full.tokens(p.x, p.z)));
  CHECK(largest_entry(output - reference(p, fw::Tanh{})) > 1e-3);
}

TEST_CASE("hypernetwork: sizes that do not fit are refused by name", "[hypernetwork]") {
  const Eigen::MatrixXd theta = Eigen::MatrixXd::Ones(3, 2), a = Eigen::MatrixXd::Ones(4, 3);
  CHECK_THROWS_WITH(Net({}, a), ContainsSubstring("theta has no matrices"));
  CHECK_THROWS_WITH(Net({theta, a}, a), ContainsSubstring("a matrix of theta has 4 rows"));
  CHECK_THROWS_WITH(Net({theta, Eigen::MatrixXd::Ones(3, 5)}, a),
                    ContainsSubstring("a matrix of theta has 5 columns"));
  CHECK_THROWS_WITH(Net({theta}, Eigen::MatrixXd::Ones(4, 2)),
                    ContainsSubstring("a matrix of theta has 3 rows"));
  const Net net({theta}, a);
  const Eigen::VectorXd two = Eigen::VectorXd::Ones(2), one = Eigen::VectorXd::Ones(1);
  CHECK_THROWS_WITH(net.tokens(one, one), ContainsSubstring("x has 1 rows"));
  CHECK_THROWS_WITH(net.tokens(two, two), ContainsSubstring("z has 2 rows"));
  CHECK_THROWS_WITH(net.output(theta), ContainsSubstring("Y has 3 rows"));
  CHECK_THROWS_WITH(net.output(Eigen::MatrixXd::Ones(net.width(), 3)),
                    ContainsSubstring("Y has 3 columns"));
  CHECK_THROWS_WITH(net.block<Tanh>(Sum({.key_size = 1, .value_size = 4})),
                    ContainsSubstring("the memory's value has 4 rows"));
  CHECK_THROWS_WITH(net.block<Tanh>(Sum({.key_size = 2, .value_size = 3})),
                    ContainsSubstring("the memory's key has 2 rows"));
}
