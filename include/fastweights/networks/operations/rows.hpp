#pragma once

#include <fastweights/networks/builder.hpp>
#include <numeric>

/// \file
/// Rows of values in another order: joined, repeated, or taken apart head by head.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Row i of the value is row from[i] of x.
template <class S> struct Gather final : Operation<S> {
  std::vector<Index> from;  ///< the row of x for each row of the value

  explicit Gather(std::vector<Index> rows) : from(std::move(rows)) {}
  void forward(const Forward<S>& run) const override {
    const auto x = run.in();
    auto y = run.out();
    for (Index t = 0; t < y.cols(); ++t)
      for (std::size_t i = 0; i < from.size(); ++i) y(Index(i), t) = x(from[i], t);
  }
  void backward(const Backward<S>& run) const override {
    const auto dy = run.dout();
    auto dx = run.din();
    for (Index t = 0; t < dy.cols(); ++t)
      for (std::size_t i = 0; i < from.size(); ++i) dx(from[i], t) += dy(Index(i), t);
  }
};
/// The rows `from` of x.
template <class S> Value<S> gather(const Value<S>& x, std::vector<Index> from) {
  const Index rows = Index(from.size());
  for (const Index i : from)
    if (i < 0 || i >= x.rows())
      fw::detail::throw_invalid({x.builder->path(), ": row ", std::to_string(i),
                                 " of a value with ", std::to_string(x.rows())});
  return x.builder->add(Gather<S>(std::move(from)), rows, {x});
}

/// All rows of the first value, then of the second, …
template <class S> struct Concatenate final : Operation<S> {
  bool overwrites() const override { return true; }
  void forward(const Forward<S>& run) const override {
    auto y = run.out();
    Index first = 0;
    for (std::size_t i = 0; i < run.node.in.size(); first += run.node.in[i++].rows)
      y.middleRows(first, run.node.in[i].rows) = run.in(i);
  }
  void backward(const Backward<S>& run) const override {
    const auto dy = run.dout();
    Index first = 0;
    for (std::size_t i = 0; i < run.node.in.size(); first += run.node.in[i++].rows)
      run.give(i, dy.middleRows(first, run.node.in[i].rows));
  }
};
/// The rows of all parts, one below the other.
template <class S> Value<S> concatenate(const std::vector<Value<S>>& parts) {
  Index rows = 0;
  for (const Value<S>& part : parts) rows += part.rows();
  return parts.at(0).builder->add(Concatenate<S>{}, rows, parts);
}

/// `times` copies of x below each other, as the weights of a norm that all heads share.
template <class S> Value<S> tile(const Value<S>& x, Index times) {
  if (times == 1) return x;
  std::vector<Index> from;
  for (Index i = 0; i < x.rows() * times; ++i) from.push_back(i % x.rows());
  return gather(x, std::move(from));
}

/// Every one of `heads` equal parts `times` times in a row: key heads that value heads share.
template <class S> Value<S> repeat_heads(const Value<S>& x, Index heads, Index times) {
  if (times == 1) return x;
  const Index d = x.rows_of_part(heads);
  std::vector<Index> from;
  for (Index h = 0; h < heads * times; ++h)
    for (Index i = 0; i < d; ++i) from.push_back(h / times * d + i);
  return gather(x, std::move(from));
}

/// x has `heads` heads, each of parts with `sizes` rows; gives each part of all heads.
template <std::size_t N, class S>
std::array<Value<S>, N> split_heads(const Value<S>& x, Index heads,
                                    const std::array<Index, N>& sizes) {
  const Index d = std::accumulate(sizes.begin(), sizes.end(), Index(0));
  if (d * heads != x.rows())
    fw::detail::throw_mismatch(x.builder->path(), "a split by head", d * heads, "rows", x.rows(),
                               "the value");
  std::array<Value<S>, N> parts;
  Index first = 0;
  for (std::size_t i = 0; i < N; first += sizes[i++]) {
    std::vector<Index> from;
    for (Index h = 0; h < heads; ++h)
      for (Index j = 0; j < sizes[i]; ++j) from.push_back(h * d + first + j);
    parts[i] = gather(x, std::move(from));
  }
  return parts;
}

/// The opposite of split_heads: head by head, the rows of the first value, of the second, …
template <class S> Value<S> join_heads(const std::vector<Value<S>>& parts, Index heads) {
  std::vector<Index> from;
  for (Index h = 0; h < heads; ++h) {
    Index first = 0;
    for (const Value<S>& part : parts) {
      const Index d = part.rows_of_part(heads);
      for (Index i = 0; i < d; ++i) from.push_back(first + h * d + i);
      first += part.rows();
    }
  }
  return gather(concatenate(parts), std::move(from));
}

/// The sum of each of `heads` equal parts.
template <class S> struct SumHeads final : Operation<S> {
  void forward(const Forward<S>& run) const override {
    const auto x = run.in();
    auto y = run.out();
    const Index d = x.rows() / y.rows();
    for (Index t = 0; t < y.cols(); ++t)
      for (Index h = 0; h < y.rows(); ++h) y(h, t) = x.col(t).segment(h * d, d).sum();
  }
  void backward(const Backward<S>& run) const override {
    const auto dy = run.dout();
    auto dx = run.din();
    const Index d = dx.rows() / dy.rows();
    for (Index t = 0; t < dy.cols(); ++t)
      for (Index h = 0; h < dy.rows(); ++h) dx.col(t).segment(h * d, d).array() += dy(h, t);
  }
};
/// The sum of `heads` equal parts of x.
template <class S> Value<S> sum_heads(const Value<S>& x, Index heads) {
  x.rows_of_part(heads);
  return x.builder->add(SumHeads<S>{}, heads, {x});
}

}  // namespace fw::networks
