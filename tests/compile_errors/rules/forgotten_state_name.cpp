// error: memory rule: `names` of State must list all its members, in order
#include "example.hpp"

struct OneNameForTwo : Rule<> {
  template <class C> struct State {
    fw::mat<C, 4, 3> W, M;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<fw::Owned<float>>;
  State<fw::Extents> state_extents() const { return {{4, 3}, {4, 3}}; }
  void write(OwnedState&, const fw::WriteToken<Rule>&) const {}
  void read(const OwnedState&, const fw::ReadToken<Rule>&, fw::OutToken<Rule>) const {}
};
static_assert(fw::assert_memory<OneNameForTwo>());
auto state_of_two = fw::initial_state(OneNameForTwo());
