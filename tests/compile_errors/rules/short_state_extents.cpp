// error: fastweights: a size is missing; state_extents() and the functions of a signature give
#include "example.hpp"

template <class S> struct TwoMatrices : Rule<S> {
  template <class C> struct State {
    fw::mat<C, fw::Dynamic, fw::Dynamic> W, M;
    static constexpr auto names = fw::names("W", "M");
  };
  using OwnedState = State<fw::Owned<S>>;
  State<fw::Extents> state_extents() const { return {{4, 3}}; }
  void write(OwnedState&, const fw::WriteToken<Rule<S>>&) const {}
  void read(const OwnedState&, const fw::ReadToken<Rule<S>>&, fw::OutToken<Rule<S>>) const {}
};
static_assert(fw::assert_memory<TwoMatrices<float>>());
