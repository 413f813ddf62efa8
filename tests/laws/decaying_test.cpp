#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>

#include "support/laws.hpp"

namespace {

using fw::Dynamic;
using fw::Index;
template <int Dv, int Dk> using Hebbian = fw::HebbianMemory<double, Dv, Dk>;
template <class Activation, int Dv = Dynamic, int Dk = Dv>
using Programmer = fw::Programmer1991<double, Dv, Dk, Activation>;

TEST_CASE("Hebbian memory obeys the laws", "[laws][hebbian]") {
  laws::at_all_sizes([](Index dv, Index dk) {
    return Hebbian<Dynamic, Dynamic>(dv, dk, {0.95, 0.5});
  });
}

TEST_CASE("Hebbian memory in fixed sizes", "[laws][hebbian]") {
  laws::fixed_is_dynamic(Hebbian<3, 17>(), Hebbian<Dynamic, Dynamic>(3, 17), false);
}

TEST_CASE("Hebbian memory decays at its rate", "[hebbian]") {
  const fw::HebbianMemory<double, 1, 1> m(1, 1, {0.5, 2.0});
  auto s = fw::initial_state(m);
  const Eigen::Matrix<double, 1, 1> one = Eigen::Matrix<double, 1, 1>::Ones(), none{0.0};
  fw::write(m, s, {one, one});
  CHECK(s.W(0, 0) == 2.0);
  fw::write(m, s, {none, one});
  CHECK(s.W(0, 0) == 1.0);
}

TEST_CASE("the programmer of 1991 obeys the laws", "[laws][programmer1991]") {
  laws::at_all_sizes([](Index dv, Index dk) { return Programmer<fw::Tanh>(dv, dk); });
  laws::gradients_are_exact(Programmer<fw::Sigmoid>(4, 5), 8, false);
  laws::gradients_are_exact(Programmer<fw::Identity>(4, 5), 8, false);
  laws::gradients_are_exact(Programmer<fw::Relu>(4, 5), 8, false);
}

TEST_CASE("the programmer of 1991 in fixed sizes", "[laws][programmer1991]") {
  laws::fixed_is_dynamic(Programmer<fw::Sigmoid, 3, 17>(), Programmer<fw::Sigmoid>(3, 17), false);
}

struct Cube {  // a user's own activation
  template <class S> S value(const S& x) const { return x * x * x; }
  template <class S> S derivative(const S& x) const { return S(3) * x * x; }
};

TEST_CASE("the programmer of 1991 works with any elementwise activation", "[programmer1991]") {
  laws::gradients_are_exact(Programmer<Cube>(3, 4), 4, false);
}

}  // namespace
