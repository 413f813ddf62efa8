#pragma once

#include <fastweights/core/signatures.hpp>

/// \file
/// Signatures of memories whose past fades at a rate α in (0, 1] that comes with every token:
/// W ← α W, or W ← W diag(α) with one α a key row.

namespace fw {

/// Write (k, v, α) with one decay a token, read q: simple gated linear attention.
template <int Dv, int Dk> struct KeyValueDecay : detail::QueryOutput<Dv, Dk> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> decay;
    static constexpr auto names = fw::names("key", "value", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueDecay<Dv, NewDk>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}}; }
};

/// Write (k, v, α) with one decay a feature of the key, read q. What fades are the columns of W:
/// behind a feature map there are as many as it has features, whatever the size of the key.
template <int Dv, int Dk, int Features> struct KeyValueFeatureDecay : detail::QueryOutput<Dv, Dk> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Features> decay;
    static constexpr auto names = fw::names("key", "value", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueFeatureDecay<Dv, NewDk, Features>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {this->features, 1}}; }
};

/// Write (k, v, α) with one decay a key row, read q: gated linear attention.
template <int Dv, int Dk> using KeyValueVectorDecay = KeyValueFeatureDecay<Dv, Dk, Dk>;

/// Write (k, v, β, α) with one write strength and one decay a token, read q: the gated delta rule.
template <int Dv, int Dk> struct KeyValueBetaDecay : detail::QueryOutput<Dv, Dk> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> beta;
    num<C> decay;
    static constexpr auto names = fw::names("key", "value", "beta", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueBetaDecay<Dv, NewDk>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {1, 1}}; }
};

/// Write (k, v, β, α) with one write strength a token and one decay a feature of the key, read q.
template <int Dv, int Dk, int Features>
struct KeyValueBetaFeatureDecay : detail::QueryOutput<Dv, Dk> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> beta;
    vec<C, Features> decay;
    static constexpr auto names = fw::names("key", "value", "beta", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueBetaFeatureDecay<Dv, NewDk, Features>;

  Write<Extents> write() const {
    return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {this->features, 1}};
  }
};

/// Write (k, v, β, α) with one write strength a token and one decay a key row, read q: Kimi delta
/// attention.
template <int Dv, int Dk> using KeyValueBetaVectorDecay = KeyValueBetaFeatureDecay<Dv, Dk, Dk>;

}  // namespace fw
