#pragma once

#include <fastweights/core/signatures.hpp>

/// \file
/// Signatures of memories with an input decay α in (0, 1] per token: W ← α W, or W ← W diag(α)
/// with one α per key row.

namespace fw {

/// Write (k, v, α) with one decay per token, read q: simple gated linear attention.
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

/// Write (k, v, α) with one decay per feature of the key, read q. The decay acts on the columns of
/// W. With a feature map, W has one column per feature, whatever the size of the key.
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

/// Write (k, v, α) with one decay per key row, read q: gated linear attention.
template <int Dv, int Dk> using KeyValueVectorDecay = KeyValueFeatureDecay<Dv, Dk, Dk>;

/// Write (k, v, β, α) with one write strength and one decay per token, read q: the gated delta
/// rule.
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

/// Write (k, v, β, α) with one write strength per token and one decay per feature of the key, read
/// q.
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

/// Write (k, v, β, α) with one write strength per token and one decay per key row, read q: Kimi
/// delta attention.
template <int Dv, int Dk> using KeyValueBetaVectorDecay = KeyValueBetaFeatureDecay<Dv, Dk, Dk>;

}  // namespace fw
