// error: memory rule: `void write(StateOf<M>&, WriteToken<M>) const` is missing
#include "example.hpp"

struct NoWrite : Rule<> {
 private:
  using Rule::write;
};
static_assert(fw::assert_memory<NoWrite>());
