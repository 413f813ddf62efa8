#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (x, α) with one decay per entry. A read takes no query: it returns the state.
template <int D> struct ValueDecay {
  Index d = D;  ///< rows of x and y

  template <class C> struct Write {
    vec<C, D> value;
    vec<C, D> decay;
    static constexpr auto names = fw::names("value", "decay");
    static constexpr auto roles = fw::roles(Role::value, Role::decay);
  };
  template <class C> struct Read {
    static constexpr auto names = fw::names();
    static constexpr auto roles = fw::roles();
  };
  template <class C> struct Out {
    vec<C, D> output;
    static constexpr auto names = fw::names("output");
  };

  Write<Extents> write() const { return {{d, 1}, {d, 1}}; }
  Read<Extents> read() const { return {}; }
  Out<Extents> out() const { return {{d, 1}}; }
};

//| `Hgrn` | h = α ⊙ h + x, a vector | y = h, without a query | 2 d | yes | Qin et al. 2023,
//|   2311.04823
/// The memory of HGRN, the hierarchically gated recurrent network: a vector that decays by entry.
///
///     h_t = α_t ⊙ h_{t−1} + x_t      y_t = h_t
///
/// It is the one row of GatedLinearAttention with d_v = 1, value 1 and key x.
///
/// Shapes: h, x, α and y d. Cost per token: 2d flops. With x = 0 the state decays and nothing is
/// written. HGRN writes x = (1 − α) ⊙ c, which keeps h as small as c; the layer does this. Throws
/// std::invalid_argument when d does not fit. Qin, Yang, Zhong 2023, arXiv 2311.04823.
template <class S, int D = Dynamic> class Hgrn {
 public:
  using Scalar = S;
  using Signature = ValueDecay<D>;
  static constexpr std::string_view name = "Hgrn";

  template <class C> struct State {
    vec<C, D> h;  ///< the state, d rows
    static constexpr auto names = fw::names("h");
  };
  using OwnedState = State<Owned<S>>;

  explicit Hgrn(Index d = D) : d_(d) { detail::check_size<D>(name, "d", d); }

  Signature signature() const { return {d_}; }
  State<Extents> state_extents() const { return {{d_, 1}}; }
  template <class T> auto cast() const { return Hgrn<T, D>(d_); }

  void write(OwnedState& s, const WriteToken<Hgrn>& t) const {
    s.h = t.decay.cwiseProduct(s.h) + t.value;
  }
  void read(const OwnedState& s, const ReadToken<Hgrn>&, OutToken<Hgrn> y) const { y.output = s.h; }
  void write_vjp(const OwnedState& s, const WriteToken<Hgrn>& t, OwnedState& ds,
                 WriteGradToken<Hgrn> dt) const {
    dt.value += ds.h;
    dt.decay += s.h.cwiseProduct(ds.h);
    ds.h.array() *= t.decay.array();
  }
  void read_vjp(const OwnedState&, const ReadToken<Hgrn>&, const OutGradToken<Hgrn>& dy,
                OwnedState& ds, ReadGradToken<Hgrn>) const {
    ds.h += dy.output;
  }

  /// A segment of writes: h ← decay ⊙ h + sum.
  struct Segment {
    detail::PlainArray<S, D, 1> decay, sum;  ///< of its writes: the product of α, and h from 0
    static constexpr auto names = fw::names("decay", "sum");
  };
  Segment empty_segment() const {
    using Vector = detail::PlainArray<S, D, 1>;
    return {Vector::Ones(d_), Vector::Zero(d_)};
  }
  void extend(Segment& g, const WriteToken<Hgrn>& t) const {
    g.decay.array() *= t.decay.array();
    g.sum = t.decay.cwiseProduct(g.sum) + t.value;
  }
  void merge(Segment& g, const Segment& later) const {
    if (&g == &later) return merge(g, Segment(later));
    g.decay.array() *= later.decay.array();
    g.sum = later.decay.cwiseProduct(g.sum) + later.sum;
  }
  void apply(const Segment& g, OwnedState& s) const { s.h = g.decay.cwiseProduct(s.h) + g.sum; }

 private:
  Index d_;
};

}  // namespace fw
