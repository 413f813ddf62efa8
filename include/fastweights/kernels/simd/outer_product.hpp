#pragma once

#include <algorithm>
#include <fastweights/kernels/simd/packet.hpp>

/// \file
/// Adds outer products to a contiguous matrix with columns of n entries. Each column is processed
/// in unaligned packets. An Eigen expression would first process single entries up to the next
/// aligned address, which is most of the work for small n.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// to = decay from + a bᵀ; `to` may be `from`.
template <class S>
void add_outer_product(S* to, const S* from, S decay, const S* a, const S* b, Index n,
                       Index columns) {
  namespace internal = Eigen::internal;
  for (Index j = 0; j < columns; ++j)
    for_packets<S>(n, [=]<class P>(Index i) {
      const P decayed =
          internal::pmul(internal::pset1<P>(decay), internal::ploadu<P>(from + j * n + i));
      internal::pstoreu(to + j * n + i, internal::pmadd(internal::ploadu<P>(a + i),
                                                        internal::pset1<P>(b[j]), decayed));
    });
}

/// Updates in place, and product = to·x with the new matrix.
template <class S>
void add_outer_product(S* to, S decay, const S* a, const S* b, Index n, Index columns, const S* x,
                       S* product) {
  namespace internal = Eigen::internal;
  std::fill_n(product, n, S(0));
  for (Index j = 0; j < columns; ++j)
    for_packets<S>(n, [=]<class P>(Index i) {
      P sum = internal::pmul(internal::pset1<P>(decay), internal::ploadu<P>(to + j * n + i));
      sum = internal::pmadd(internal::ploadu<P>(a + i), internal::pset1<P>(b[j]), sum);
      internal::pstoreu(to + j * n + i, sum);
      internal::pstoreu(product + i, internal::pmadd(sum, internal::pset1<P>(x[j]),
                                                     internal::ploadu<P>(product + i)));
    });
}

/// to += a bᵀ + c dᵀ
template <class S>
void add_outer_products(S* to, const S* a, const S* b, const S* c, const S* d, Index n,
                        Index columns) {
  namespace internal = Eigen::internal;
  for (Index j = 0; j < columns; ++j)
    for_packets<S>(n, [=]<class P>(Index i) {
      S* const at = to + j * n + i;
      const P sum = internal::pmadd(internal::ploadu<P>(a + i), internal::pset1<P>(b[j]),
                                    internal::ploadu<P>(at));
      internal::pstoreu(at,
                        internal::pmadd(internal::ploadu<P>(c + i), internal::pset1<P>(d[j]), sum));
    });
}

}  // namespace fw::detail
