#pragma once

#include <fastweights/networks/builder.hpp>

/// \file
/// Sums, differences and products of two values, entry by entry. The second may have fewer rows: of
/// b with H rows, entry h belongs to the h-th of H equal parts of a, its head. A constant b belongs
/// to all tokens.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The functions of two values that Combine computes.
enum class Combination {
  sum,         ///< a + b
  difference,  ///< a − b
  product      ///< a ⊙ b
};

/// y = a + b, a − b or a ⊙ b.
template <class S, Combination kind> struct Combine final : Operation<S> {
  static constexpr bool takes_constants = true;
  bool overwrites() const override { return true; }

  void forward(const Forward<S>& run) const override {
    const auto a = run.in(0), b = run.in(1);
    auto y = run.out();
    if (a.rows() == b.rows() && a.cols() == b.cols()) {  // the most frequent case, and vectorised
      combine(a, b, y);
      return;
    }
    const Index d = a.rows() / b.rows();
    for (Index t = 0; t < y.cols(); ++t) {
      const auto at = a.col(column(a, t)), bt = b.col(column(b, t));
      auto yt = y.col(t);
      if (d == 1)
        combine(at, bt, yt);
      else
        for (Index h = 0; h < b.rows(); ++h)
          yt.segment(h * d, d).array() = combined(at.segment(h * d, d).array(), bt[h]);
    }
  }

  void backward(const Backward<S>& run) const override {
    const auto a = run.in(0), b = run.in(1);
    if (a.rows() == b.rows() && a.cols() == run.dout().cols())
      add_whole(run, a, b);
    else
      add_parts(run, a, b);
  }

 private:
  template <class V> static Index column(const V& v, Index t) { return v.cols() == 1 ? 0 : t; }

  // For a that has every entry of y, and b has too or is one column.
  template <class V> static void add_whole(const Backward<S>& run, const V& a, const V& b) {
    const auto dy = run.dout();
    const bool one_column = b.cols() == 1 && a.cols() > 1;
    if constexpr (kind != Combination::product)
      run.give(0, dy);
    else if (one_column)
      run.give(0, b.col(0).asDiagonal() * dy);
    else
      run.give(0, dy.cwiseProduct(b));
    const auto add = [&](const auto& to_b) {
      if (one_column)
        run.give(1, to_b.rowwise().sum());
      else
        run.give(1, to_b);
    };
    if constexpr (kind == Combination::sum) add(dy);
    if constexpr (kind == Combination::difference) add(-dy);
    if constexpr (kind == Combination::product) add(dy.cwiseProduct(a));
  }
  // For an entry of b that may belong to several rows of a, or an entry of a to all tokens.
  template <class V> static void add_parts(const Backward<S>& run, const V& a, const V& b) {
    const auto dy = run.dout();
    auto da = run.din(0), db = run.din(1);
    if (run.is_first(0)) da.setZero();
    if (run.is_first(1)) db.setZero();
    const Index d = a.rows() / b.rows();
    for (Index t = 0; t < dy.cols(); ++t) {
      const Index ta = column(a, t), tb = column(b, t);
      for (Index h = 0; h < b.rows(); ++h) {
        const auto dyh = dy.col(t).segment(h * d, d).array();
        if constexpr (kind == Combination::product) {
          da.col(ta).segment(h * d, d).array() += dyh * b(h, tb);
          db(h, tb) += (dyh * a.col(ta).segment(h * d, d).array()).sum();
        } else {
          da.col(ta).segment(h * d, d).array() += dyh;
          if constexpr (kind == Combination::sum)
            db(h, tb) += dyh.sum();
          else
            db(h, tb) -= dyh.sum();
        }
      }
    }
  }
  template <class A> static auto combined(const A& a, const S& b) {
    if constexpr (kind == Combination::sum) return a + b;
    if constexpr (kind == Combination::difference) return a - b;
    if constexpr (kind == Combination::product) return a * b;
  }
  template <class A, class B, class Y> static void combine(const A& a, const B& b, Y& y) {
    if constexpr (kind == Combination::sum) y = a + b;
    if constexpr (kind == Combination::difference) y = a - b;
    if constexpr (kind == Combination::product) y = a.cwiseProduct(b);
  }
};

/// Adds this operation to the network of a.
template <Combination kind, class S> Value<S> combine(const Value<S>& a, const Value<S>& b) {
  if (a.rows() % b.rows() != 0)
    fw::detail::throw_mismatch(a.builder->path(), "the second of two values", b.rows(), "rows",
                               a.rows(), "the first, or a divisor of that,");
  return a.builder->add(Combine<S, kind>{}, a.rows(), {a, b});
}
/// a + b.
template <class S> Value<S> operator+(const Value<S>& a, const Value<S>& b) {
  return combine<Combination::sum>(a, b);
}
/// a − b.
template <class S> Value<S> operator-(const Value<S>& a, const Value<S>& b) {
  return combine<Combination::difference>(a, b);
}
/// a ⊙ b.
template <class S> Value<S> operator*(const Value<S>& a, const Value<S>& b) {
  return combine<Combination::product>(a, b);
}

}  // namespace fw::networks
