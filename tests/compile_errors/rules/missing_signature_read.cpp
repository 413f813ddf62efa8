// error: signature: `Read<fw::Extents> read() const` is missing
#include "example.hpp"

struct ReadsNothing : fw::KeyValue<3, 4> {
 private:
  using KeyValue::read;
};
struct RuleOfIt : Rule<> {
  using Signature = ReadsNothing;
  Signature signature() const { return {}; }
};
static_assert(fw::assert_memory<RuleOfIt>());
