#pragma once

#include <fastweights/core/signatures.hpp>
#include <type_traits>

/// \file
/// Signatures of recurrent fast weight programmers. Each write uses the previous output, so the
/// write computes the new output and stores it in the state. The read takes no input and returns
/// it:
///
///     fw::step(memory, state, {k, v, beta, q, rk, rv, rbeta}, {}, {y});

namespace fw::inline FASTWEIGHTS_ABI {

/// One number per step for each of N nets; a plain number for N = 1.
template <class C, int N>
using nums = std::conditional_t<N == 1, num<C>, vec<C, N == 1 ? Dynamic : N>>;

/// Reads nothing and gives y (d_v): the base of the signatures whose write computes the output.
template <int Dk, int Dv> struct RecurrentOutput {
  Index dk = Dk;
  Index dv = Dv;

  template <class C> struct Read {
    static constexpr auto names = fw::names();
    static constexpr auto roles = fw::roles();
  };
  template <class C> struct Out {
    vec<C, Dv> output;
    static constexpr auto names = fw::names("output");
  };

  Read<Extents> read() const { return {}; }
  Out<Extents> out() const { return {{dv, 1}}; }
  Sizes<Dk, Dv> sizes() const { return {dk, dv}; }

  /// Throws std::invalid_argument unless both sizes are positive and agree with Dk and Dv.
  void check(std::string_view rule) const {
    if (Dk == Dynamic) detail::check_given(rule, "key_size", dk);
    detail::check_size<Dv>(rule, "d_v", dv);
    detail::check_size<Dk>(rule, "d_k", dk);
  }
};

/// Write, for each of `Nets` fast nets, (k, v, β, q) of its fast weights and (k, v, β) of its
/// recurrent weights. Each net has a column.
template <int Dk, int Dv, int Nets = 1> struct RecurrentKeyValueBeta : RecurrentOutput<Dk, Dv> {
  template <class C> struct Write {
    mat<C, Dk, Nets> key;
    mat<C, Dv, Nets> value;
    nums<C, Nets> beta;
    mat<C, Dk, Nets> query;
    mat<C, Dv, Nets> recurrent_key;    ///< the keys of R, d_v×Nets
    mat<C, Dv, Nets> recurrent_value;  ///< the values of R, d_v×Nets
    nums<C, Nets> recurrent_beta;      ///< the write strengths of R, one per net
    static constexpr auto names = fw::names("key", "value", "beta", "query", "recurrent_key",
                                            "recurrent_value", "recurrent_beta");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength, Role::key,
                                            Role::distribution, Role::value, Role::strength);
  };

  Write<Extents> write() const {
    const MemberExtent keys{this->dk, Nets}, values{this->dv, Nets}, strengths{Nets, 1};
    return {keys, values, strengths, keys, values, values, strengths};
  }
};

/// Write the preactivations of (k, v, β, q) that the slow weights compute. The memory adds a
/// projection of its previous output to each and applies softmax and sigmoid itself.
template <int Dk, int Dv> struct PreactivationKeyValueBeta : RecurrentOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> beta;
    vec<C, Dk> query;
    static constexpr auto names = fw::names("key", "value", "beta", "query");
    static constexpr auto roles = fw::roles(Role::value, Role::value, Role::value, Role::value);
  };

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {this->dk, 1}}; }
};

/// Write x, read with x.
template <int Dk, int Dv> struct SelfReferential : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> input;  ///< x, d_k rows
    static constexpr auto names = fw::names("input");
    static constexpr auto roles = fw::roles(Role::distribution);
  };

  Write<Extents> write() const { return {{this->dk, 1}}; }
};

}  // namespace fw
