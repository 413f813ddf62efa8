#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>

#include "support/laws.hpp"

namespace {

using fw::Dynamic;
using fw::Index;
template <int Dk, int Dv> using Hebbian = fw::HebbianMemory<double, Dk, Dv>;
template <class Activation, int Dk = Dynamic, int Dv = Dk>
using Programmer = fw::Programmer1991<double, Dk, Dv, Activation>;

TEST_CASE("Hebbian memory obeys the laws", "[laws][hebbian]") {
  laws::at_all_sizes([](Index dk, Index dv) {
    return Hebbian<Dynamic, Dynamic>({dk, dv}, {0.95, 0.5});
  });
}

TEST_CASE("Hebbian memory in fixed sizes", "[laws][hebbian]") {
  laws::fixed_is_dynamic(Hebbian<17, 3>(),
                         Hebbian<Dynamic, Dynamic>({.key_size = 17, .value_size = 3}), false);
}

TEST_CASE("Hebbian memory decays at its rate", "[hebbian]") {
  const fw::HebbianMemory<double, 1, 1> m({.key_size = 1}, {0.5, 2.0});
  auto s = fw::initial_state(m);
  const Eigen::Matrix<double, 1, 1> one = Eigen::Matrix<double, 1, 1>::Ones(), none{0.0};
  fw::write(m, s, {one, one});
  CHECK(s.W(0, 0) == 2.0);
  fw::write(m, s, {none, one});
  CHECK(s.W(0, 0) == 1.0);
}

TEST_CASE("the programmer of 1991 obeys the laws", "[laws][programmer1991]") {
  laws::at_all_sizes([](Index dk, Index dv) { return Programmer<fw::Tanh>({dk, dv}); });
  laws::gradients_are_exact(Programmer<fw::Sigmoid>({.key_size = 5, .value_size = 4}), 8, false);
  laws::gradients_are_exact(Programmer<fw::Identity>({.key_size = 5, .value_size = 4}), 8, false);
  laws::gradients_are_exact(Programmer<fw::Relu>({.key_size = 5, .value_size = 4}), 8, false);
}

TEST_CASE("the programmer of 1991 in fixed sizes", "[laws][programmer1991]") {
  laws::fixed_is_dynamic(Programmer<fw::Sigmoid, 17, 3>(),
                         Programmer<fw::Sigmoid>({.key_size = 17, .value_size = 3}), false);
}

struct Cube {  // a user's own activation
  template <class S> S value(const S& x) const { return x * x * x; }
  template <class S> S derivative(const S& x) const { return S(3) * x * x; }
};

TEST_CASE("the programmer of 1991 works with any elementwise activation", "[programmer1991]") {
  laws::gradients_are_exact(Programmer<Cube>({.key_size = 4, .value_size = 3}), 4, false);
}

}  // namespace
