#pragma once

#include <fastweights/core/signatures.hpp>

/// \file
/// Signatures of memories whose past fades at a rate α in (0, 1] that comes with every token:
/// W ← α W, or W ← W diag(α) with one α a key row.

namespace fw {

/// Write (k, v, α) with one decay a token, read q: simple gated linear attention.
template <int Dk, int Dv> struct KeyValueDecay : detail::QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> decay;
    static constexpr auto names = fw::names("key", "value", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueDecay<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}}; }
};

/// Write (k, v, α) with one decay a feature of the key, read q. What fades are the columns of W:
/// behind a feature map there are as many as it has features, whatever the size of the key.
template <int Dk, int Dv, int Features> struct KeyValueFeatureDecay : detail::QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Features> decay;
    static constexpr auto names = fw::names("key", "value", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueFeatureDecay<NewDk, Dv, Features>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {this->features, 1}}; }
};

/// Write (k, v, α) with one decay a key row, read q: gated linear attention.
template <int Dk, int Dv> using KeyValueVectorDecay = KeyValueFeatureDecay<Dk, Dv, Dk>;

/// Write (k, v, β, α) with one write strength and one decay a token, read q: the gated delta rule.
template <int Dk, int Dv> struct KeyValueBetaDecay : detail::QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> beta;
    num<C> decay;
    static constexpr auto names = fw::names("key", "value", "beta", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueBetaDecay<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {1, 1}}; }
};

/// Write (k, v, β, α) with one write strength a token and one decay a feature of the key, read q.
template <int Dk, int Dv, int Features>
struct KeyValueBetaFeatureDecay : detail::QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> beta;
    vec<C, Features> decay;
    static constexpr auto names = fw::names("key", "value", "beta", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueBetaFeatureDecay<NewDk, Dv, Features>;

  Write<Extents> write() const {
    return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {this->features, 1}};
  }
};

/// Write (k, v, β, α) with one write strength a token and one decay a key row, read q: Kimi delta
/// attention.
template <int Dk, int Dv> using KeyValueBetaVectorDecay = KeyValueBetaFeatureDecay<Dk, Dv, Dk>;

}  // namespace fw
