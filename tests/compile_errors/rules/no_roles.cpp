// error: signature: Write and Read must list the `roles` of all their members
#include <fastweights/testing/sequences.hpp>

#include "example.hpp"

struct Roleless : fw::KeyValue<3, 4> {
  template <class C> struct Write {
    fw::vec<C, 3> key;
    fw::vec<C, 4> value;
    static constexpr auto names = fw::names("key", "value");
  };
  Write<fw::Extents> write() const { return {{3, 1}, {4, 1}}; }
};
struct RuleOfThem : Rule<> {
  using Signature = Roleless;
  Signature signature() const { return {}; }
  void write(OwnedState&, const fw::WriteToken<RuleOfThem>&) const {}
};
fw::Random generator(1);
auto all = fw::testing::random_sequences(RuleOfThem(), 3, generator);
