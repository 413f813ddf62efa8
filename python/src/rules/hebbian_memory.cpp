#include <fastweights/memories/rules/hebbian.hpp>

#include "bind_rule.hpp"

namespace fw::python {

namespace {

struct HebbianMemory {
  template <class S> using type = fw::HebbianMemory<S>;
  static constexpr const char* name = "HebbianMemory";
  static constexpr const char* doc =
      R"(Hebbian memory with a constant decay, the fast weights of Ba et al.; retention with rate 1.

    W = decay W + rate v k^T      y = W q

query and key [..., d_k], value and output [..., d_v]. Ba et al. 2016, arXiv 1610.06258, eq. 1.)";
  static constexpr std::array settings{Setting{"decay", 0.95}, Setting{"rate", 0.5}};
  template <class S> static type<S> make(Sizes<> sizes, double decay, double rate) {
    return type<S>(sizes, {S(decay), S(rate)});
  }
};

}  // namespace

void bind_hebbian_memory(nb::module_& m) { bind_rule<HebbianMemory>(m); }

}  // namespace fw::python
