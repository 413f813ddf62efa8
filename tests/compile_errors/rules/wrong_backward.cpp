// error: memory rule: `backward` exists, but does not take
#include "example.hpp"

struct WrongBackward : Rule<> {
  void backward(const OwnedState&, OwnedState&) const {}
};
static_assert(fw::assert_memory<WrongBackward>());
