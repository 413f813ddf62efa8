#pragma once

#include <Eigen/Core>
#include <fastweights/core/abi.hpp>
#include <type_traits>

/// \file
/// Whose members are a rule's own forms of step, scan and backward. They are the rule's. Shared
/// code can give them to all rules of a kind instead: it specialises a class below with another
/// `type`, which has these members and is made from a `const M&`. The kernels do this
/// (kernels/rule.hpp, kernels/backward/forms.hpp), and leave out rules with such members of their
/// own.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Scalars with kernels; other scalars use the generic algorithms.
template <class S>
concept KernelScalar = std::is_same_v<S, float> || std::is_same_v<S, double>;

/// `step` and `scan`.
template <class M> struct ScanImplementation { using type = M; };
template <class M> using ScanImplementationOf = typename ScanImplementation<M>::type;

/// `Trace`, the `scan` that fills it, and `backward`.
template <class M> struct BackwardImplementation { using type = M; };
template <class M> using BackwardImplementationOf = typename BackwardImplementation<M>::type;

template <class Forms, class M> EIGEN_ALWAYS_INLINE decltype(auto) implementation_of(const M& m) {
  if constexpr (std::is_same_v<Forms, M>)
    return (m);
  else
    return Forms{m};
}
/// The object with the members: m itself, or one that refers to m.
template <class M> EIGEN_ALWAYS_INLINE decltype(auto) scan_implementation(const M& m) {
  return implementation_of<ScanImplementationOf<M>>(m);
}
template <class M> EIGEN_ALWAYS_INLINE decltype(auto) backward_implementation(const M& m) {
  return implementation_of<BackwardImplementationOf<M>>(m);
}

}  // namespace fw::detail
