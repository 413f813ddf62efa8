#pragma once

#include <fastweights/core/signatures.hpp>
#include <type_traits>

/// \file
/// What recurrent fast weight programmers take and give. What they answered last is part of what
/// they do next, so a token's write makes the answer, and the read, which takes nothing, returns
/// it:
///
///     fw::step(memory, state, {k, v, beta, q, rk, rv, rbeta}, {}, {y});

namespace fw {

/// One number a step for each of N nets: the number itself where N is 1.
template <class C, int N>
using nums = std::conditional_t<N == 1, num<C>, vec<C, N == 1 ? Dynamic : N>>;

namespace detail {

// Reads nothing and returns y (d_v).
template <int Dk, int Dv> struct AnswerOutput {
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
    check_size<Dv>(rule, "d_v", dv);
    check_size<Dk>(rule, "d_k", dk);
  }
};

}  // namespace detail

/// Write, for each of `Nets` fast nets, (k, v, β, q) of its fast weights and (k, v, β) of its
/// recurrent ones, one net a column.
template <int Dk, int Dv, int Nets = 1>
struct RecurrentKeyValueBeta : detail::AnswerOutput<Dk, Dv> {
  template <class C> struct Write {
    mat<C, Dk, Nets> key;
    mat<C, Dv, Nets> value;
    nums<C, Nets> beta;
    mat<C, Dk, Nets> query;
    mat<C, Dv, Nets> recurrent_key;
    mat<C, Dv, Nets> recurrent_value;
    nums<C, Nets> recurrent_beta;
    static constexpr auto names = fw::names("key", "value", "beta", "query", "recurrent_key",
                                            "recurrent_value", "recurrent_beta");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength, Role::key,
                                            Role::distribution, Role::value, Role::strength);
  };

  Write<Extents> write() const {
    const Extent keys{this->dk, Nets}, values{this->dv, Nets}, strengths{Nets, 1};
    return {keys, values, strengths, keys, values, values, strengths};
  }
};

/// Write (k, v, β, q) as the slow weights give them: the memory adds to each what it answered last,
/// and squashes keys, queries and strengths itself.
template <int Dk, int Dv> struct UnsquashedKeyValueBeta : detail::AnswerOutput<Dk, Dv> {
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
template <int Dk, int Dv> struct SelfReferential : detail::QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> input;
    static constexpr auto names = fw::names("input");
    static constexpr auto roles = fw::roles(Role::distribution);
  };

  Write<Extents> write() const { return {{this->dk, 1}}; }
};

}  // namespace fw
