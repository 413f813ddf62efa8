// error: memory rule: `State<fw::Extents> state_extents() const` is missing
#include "example.hpp"

struct NoExtents : Rule<> {
 private:
  using Rule::state_extents;
};
static_assert(fw::assert_memory<NoExtents>());
