#pragma once

#include <fastweights/kernels/scan/scan_panel.hpp>
#include <fastweights/math/products.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// What DeferredDecay is for one decay per token, for one per column: column j is stored divided by
/// `divisor` times `divisors()[j]`, which decays instead. When one of these leaves [1/1024, 2], the
/// next pass multiplies all stored columns, and all start at 1 again. Look-up keys and queries are
/// multiplied by `divisors()` alone, so that large ones do not overflow: the products are
/// multiplied by `divisor`. Keys of writes are divided by both. So most passes have no decay.
template <class S, Products needed> class ColumnDecays {
 public:
  static constexpr S divisor = DeferredDecay<S>::start;

  /// For pairs 0 … pairs − 1 of a batch.
  ColumnDecays(Index columns, Index pairs)
      : columns_(columns),
        buffer_(thread_buffer<S, ColumnDecays>((pairs * vectors + shared) * columns)),
        own_(buffer_ + pairs * vectors * columns) {
    std::fill_n(divisors(), columns, S(1));
    std::fill_n(ones(), columns, S(1));
  }
  S* divisors() const { return own_; }

  /// Replaces the vectors of pair i by those for the stored matrix; the decays of its tokens are
  /// null for no decay. Gives the key of the first token with the decay of the second.
  const S* apply(Pair<S>& p, const S* first, const S* second, UpdateOrder order, Index i) {
    S* const to = buffer_ + i * vectors * columns_;
    set_products(p, first == nullptr ? ones() : first, second == nullptr ? ones() : second, order,
                 to);
    const S* const key = second == nullptr ? p.one.key : decayed_key();
    const auto size = Eigen::Map<const Eigen::Array<S, Eigen::Dynamic, 1>>(after(), columns_).abs();
    if (size.template minCoeff<Eigen::PropagateNaN>() >= S(1) / divisor && size.maxCoeff() <= S(2))
      defer(p, key, to + 4 * columns_);
    else
      decay(p, key, to + 4 * columns_);
    return key;
  }

 private:
  static constexpr bool looks_up = needed != Products::queries, reads = needed != Products::lookups,
                        both = needed != Products::removal;
  static constexpr Index vectors = 7, shared = 4;

  S* ones() const { return own_ + columns_; }
  S* after() const { return own_ + 2 * columns_; }  // the divisors, if the decays are deferred
  S* decayed_key() const { return own_ + 3 * columns_; }

  // Those of the products, and what `defer` and `decay` need.
  EIGEN_ALWAYS_INLINE void set_products(Pair<S>& p, const S* first, const S* second,
                                        UpdateOrder order, S* to) const {
    namespace internal = Eigen::internal;
    const S *const a1 = p.one.lookup_key, *const a2 = p.two.lookup_key, *const q1 = p.one.query,
                   *const q2 = p.two.query, *const b1 = p.one.key;
    const bool looks_up_first = order.lookup_before_decay, reads_first = order.reads_first;
    for_packets<S>(columns_, [=, this]<class P>(Index j) {
      const auto load = [j](const S* x) { return internal::ploadu<P>(x + j); };
      const P before = load(divisors()), one = internal::pmul(before, load(first)),
              by = load(second), two = internal::pmul(one, by);
      const auto put = [=, this](Index i, const P& x, const P& factor) {
        internal::pstoreu(to + i * columns_ + j, internal::pmul(x, factor));
      };
      if constexpr (looks_up) put(0, load(a1), looks_up_first ? before : one);
      if constexpr (looks_up && both) put(1, load(a2), looks_up_first ? one : two);
      if constexpr (reads && both) put(2, load(q1), reads_first ? before : one);
      if constexpr (reads) put(3, load(q2), reads_first ? one : two);
      internal::pstoreu(after() + j, two);
      internal::pstoreu(decayed_key() + j, internal::pmul(load(b1), by));
    });
    p.one.lookup_key = to;
    p.two.lookup_key = to + columns_;
    p.one.query = to + 2 * columns_;
    p.two.query = to + 3 * columns_;
  }

  void defer(Pair<S>& p, const S* key, S* to) const {
    namespace internal = Eigen::internal;
    const S* const b2 = p.two.key;
    for_packets<S>(columns_, [=, this]<class P>(Index j) {
      const P own = internal::ploadu<P>(after() + j);
      const P inverse = internal::pdiv(internal::pset1<P>(S(1) / divisor), own);
      internal::pstoreu(divisors() + j, own);
      internal::pstoreu(to + j, internal::pmul(internal::ploadu<P>(key + j), inverse));
      internal::pstoreu(to + columns_ + j, internal::pmul(internal::ploadu<P>(b2 + j), inverse));
    });
    set_keys(p, to, nullptr);
  }
  void decay(Pair<S>& p, const S* key, S* to) const {
    namespace internal = Eigen::internal;
    const S* const b2 = p.two.key;
    for_packets<S>(columns_, [=, this]<class P>(Index j) {
      const P inverse = internal::pset1<P>(S(1) / divisor);
      const auto put = [=, this](Index i, const S* x, const P& factor) {
        internal::pstoreu(to + i * columns_ + j,
                          internal::pmul(internal::ploadu<P>(x + j), factor));
      };
      put(0, key, inverse);
      put(1, b2, inverse);
      put(2, after(), internal::pset1<P>(S(1)));
    });
    std::fill_n(divisors(), columns_, S(1));
    set_keys(p, to, to + 2 * columns_);
  }
  void set_keys(Pair<S>& p, const S* keys, const S* decays) const {
    p.one.key = keys;
    p.two.key = keys + columns_;
    p.decays = decays;
  }

  Index columns_;
  S *buffer_, *own_;
};

}  // namespace fw::detail
