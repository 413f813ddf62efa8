#pragma once

#include <fastweights/layers/relative_attention.hpp>

#include "networks/long_term_layers.hpp"
#include "networks/operation_checks.hpp"

/// \file
/// Small networks around every kind of long-term memory, and their checks.

namespace long_term {

using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;

/// Scalars of these networks: not float, in which each long-term layer compiles for 2 s more.
template <class X>
concept Wide = !std::is_same_v<ScalarOf<X>, float>;

inline auto joined(Kind kind, Join how = Join::sum) {
  return [=](const Wide auto& x) {
    const auto near =
        relative_attention(x, "short_term", {.heads = heads, .window = window, .bias = true});
    return join(kind, x, near, {window, chunk}, how);
  };
}
inline auto alone(Kind kind) {
  return [=](const Wide auto& x) {
    return attend(kind, x, linear(x, "query", d), "long_term", {window, chunk});
  };
}

inline void check(Kind kind) {
  check_operation(d, joined(kind));
  const Net network = network_of(d, joined(kind, Join::alpha));
  check_gradients(network, joined(kind, Join::alpha), 9);
  const Net one = network_of(d, alone(kind));
  check_streaming(one);
  check_gradients(one, alone(kind), 9);
  check_state_gradient(one, alone(kind), 9);  // writes what the state has
}

}  // namespace long_term
