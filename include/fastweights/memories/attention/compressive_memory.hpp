#pragma once

#include <fastweights/continuous/attend.hpp>
#include <fastweights/continuous/softmax_density.hpp>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `CompressiveMemory` | the mean of c tokens becomes a slot | y = Σ softmax(slot·q/√d) slot |
//|   4 d per slot and query |  | Rae et al. 2019, 1911.05507
/// The memory of the Compressive Transformer: every `rate` tokens become one vector, and reads are
/// softmax attention over the last `capacity` vectors.
///
///     write X:  for every `rate` tokens, slot ← their mean; the oldest slot is forgotten
///     read q:   y = Σ_i p_i slot_i,   p = softmax of slot_i·q/√d
///
/// Tokens that do not fill a slot are kept for the next write, so that the slots do not depend on
/// how the tokens are split into chunks. With rate 1 it stores vectors that are compressed already,
/// such as the outputs of a StridedConv. Reading an empty memory gives 0.
///
/// Shapes: signal, query and output d×any; state d×(capacity + 1). `heads` split the rows. Cost of
/// a write: d adds per token; of a read: 4 d flops per filled slot. No heap up to 16384 slots in
/// float and 8192 in double, whose scores are on the stack. Throws std::invalid_argument when an
/// option is out of range or a size does not fit. Rae, Potapenko, Jayakumar, Lillicrap 2019, arXiv
/// 1911.05507, section 3.
template <class S, int D = Dynamic> class CompressiveMemory {
 public:
  static constexpr bool sticky = false;  ///< reads leave no trace in the state
  using Scalar = S;
  using Signature = Chunks<D>;
  static constexpr std::string_view name = "CompressiveMemory";

  /// Sizes of a CompressiveMemory.
  struct Options {
    Index d = D;         ///< features of a token
    Index heads = 1;     ///< must divide d
    Index chunk = 1;     ///< tokens per step of a sequence; a write takes any number
    Index capacity = 1;  ///< number of slots
    Index rate = 1;      ///< tokens per slot
  };

  /// A ring buffer of slots, and the sum of the tokens that do not fill a slot yet.
  template <class C> struct State {
    mat<C, D, Dynamic> slots;  ///< a ring buffer of slots, d×capacity
    vec<C, D> partial_sum;     ///< of the tokens that do not fill a slot yet
    count<C> tokens;           ///< tokens written
    static constexpr auto names = fw::names("slots", "partial_sum", "tokens");
  };
  using OwnedState = State<Owned<S>>;

  /// Throws std::invalid_argument when an option is out of range.
  explicit CompressiveMemory(Options options) : options_(options) {
    detail::check_size<D>(name, "d", options.d);
    for (const auto& [which, given] :
         {std::pair("heads", options.heads), std::pair("chunk", options.chunk),
          std::pair("capacity", options.capacity), std::pair("rate", options.rate)})
      detail::check_size<Dynamic>(name, which, given);
    if (options.d % options.heads != 0)
      detail::throw_invalid({name, ": d is ", std::to_string(options.d),
                             ", expected a multiple of heads, ", std::to_string(options.heads)});
  }

  Signature signature() const { return {options_.d, options_.chunk}; }
  State<Extents> state_extents() const {
    return {{options_.d, options_.capacity}, {options_.d, 1}, {}};
  }
  /// The options it was made with.
  const Options& options() const { return options_; }
  /// Coefficients for a layer: here the slots.
  Slots basis() const { return {}; }
  /// Softmax over the slots.
  SoftmaxDensity density() const { return {}; }
  template <class T> auto cast() const {
    return CompressiveMemory<T, D>(
        {options_.d, options_.heads, options_.chunk, options_.capacity, options_.rate});
  }

  /// The filled slots, which reads attend to, and their gradient.
  auto slots(const OwnedState& s) const { return s.slots.leftCols(filled(s)); }
  /// The part of the state's gradient that belongs to the filled slots.
  auto slots_gradient(const OwnedState& s, OwnedState& ds) const {
    return ds.slots.leftCols(filled(s));
  }

  void write(OwnedState& s, const WriteToken<CompressiveMemory>& t) const {
    const S weight = S(1) / S(static_cast<double>(options_.rate));
    for (Index l = 0; l < t.signal.cols(); ++l) {
      s.partial_sum += t.signal.col(l);
      if (++s.tokens % options_.rate != 0) continue;
      s.slots.col(slot_of(s.tokens - 1)) = weight * s.partial_sum;
      s.partial_sum.setZero();
    }
  }

  void read(const OwnedState& s, const ReadToken<CompressiveMemory>& t,
            OutToken<CompressiveMemory> y) const {
    const auto all = slots(s);
    for (Index h = 0; h < options_.heads; ++h)
      detail::attend(density(), basis(), head(all, h), head(all, h), head(t.query, h),
                     head(y.output, h), [](Index, const auto&, const auto&) {});
  }

  void write_vjp(const OwnedState& before, const WriteToken<CompressiveMemory>& t, OwnedState& ds,
                 WriteGradToken<CompressiveMemory> dt) const {
    const S weight = S(1) / S(static_cast<double>(options_.rate));
    // From the last token to the first: ds.partial_sum is the gradient of the sum that contains
    // token l.
    for (Index l = t.signal.cols() - 1; l >= 0; --l) {
      const Index token = before.tokens + l;
      if ((token + 1) % options_.rate == 0) {
        auto dslot = ds.slots.col(slot_of(token));
        ds.partial_sum = weight * dslot;  // the write cleared the sum after this token
        dslot.setZero();
      }
      dt.signal.col(l) += ds.partial_sum;
    }
  }

  void read_vjp(const OwnedState& s, const ReadToken<CompressiveMemory>& t,
                OutGradToken<CompressiveMemory> dy, OwnedState& ds,
                ReadGradToken<CompressiveMemory> dt) const {
    const auto all = slots(s);
    auto dall = slots_gradient(s, ds);
    SoftmaxDensity unused;
    for (Index h = 0; h < options_.heads; ++h) {
      auto dhead = head(dall, h);
      detail::attend_vjp(
          density(), basis(), head(all, h), head(all, h), head(t.query, h), head(dy.output, h),
          [](Index, const auto& mixture) { return SoftmaxDensity{}.zero_gradient(mixture); }, dhead,
          dhead, head(dt.query, h), unused);
    }
  }

 private:
  Index slot_of(Index token) const { return token / options_.rate % options_.capacity; }
  Index filled(const OwnedState& s) const {
    return std::min(s.tokens / options_.rate, options_.capacity);
  }
  template <class M> auto head(M&& all, Index h) const {
    const Index rows = options_.d / options_.heads;
    return all.middleRows(h * rows, rows);
  }

  Options options_;
};

}  // namespace fw
