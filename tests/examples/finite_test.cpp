// run_model --load-state: no entry of a stranger's state is NaN or infinite, in any type.

#include "published/finite.hpp"

#include <fastweights/io/safetensors_writer.hpp>
#include <limits>
#include <vector>

#include "support/catch.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using fw::io::SafeTensors;

template <class S> SafeTensors state_with(S entry) {
  fw::io::SafeTensorsWriter file;
  file.add("state.position", {1}, std::vector<std::int64_t>{3});
  file.add("state.W", {3}, std::vector<S>{S(1), entry, S(2)});
  return SafeTensors::parse(file.bytes(), "file");
}
template <class S> void refused(S entry, const std::string& shown) {
  CHECK_THROWS_WITH(check_finite(state_with(entry)),
                    ContainsSubstring("state.W") && ContainsSubstring("has the entry " + shown));
}

TEMPLATE_TEST_CASE("a state with NaN or infinity is refused by its tensor", "", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using Limits = std::numeric_limits<TestType>;
  CHECK_NOTHROW(check_finite(state_with(TestType(-3))));
  refused(Limits::quiet_NaN(), "nan");
  refused(Limits::infinity(), "inf");
  refused(TestType(-Limits::infinity()), "-inf");
}

TEST_CASE("a double that is no float is refused") {
  CHECK_THROWS_WITH(check_finite(state_with(1e300)),
                    ContainsSubstring("state.W") && ContainsSubstring("beyond the range"));
  CHECK_NOTHROW(check_finite(state_with(1e30)));
}

}  // namespace
