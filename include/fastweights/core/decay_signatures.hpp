#pragma once

#include <fastweights/core/signatures.hpp>

/// \file
/// Signatures of memories with an input decay α in (0, 1] per token: W ← α W, or W ← W diag(α)
/// with one α per key row.

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, α) with one decay per token, read q: simple gated linear attention.
template <int Dk, int Dv> struct KeyValueDecay : QueryOutput<Dk, Dv> {
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

/// Write (k, v, α) with one decay per feature of the key, read q. The decay acts on the columns of
/// W. With a feature map, W has one column per feature, whatever the size of the key.
template <int Dk, int Dv, int Features> struct KeyValueFeatureDecay : QueryOutput<Dk, Dv> {
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

/// Write (k, v, α) with one decay per key row, read q: gated linear attention.
template <int Dk, int Dv> using KeyValueVectorDecay = KeyValueFeatureDecay<Dk, Dv, Dk>;

/// Write (k, v, β, α) with one write strength and one decay per token, read q: the gated delta
/// rule.
template <int Dk, int Dv> struct KeyValueBetaDecay : QueryOutput<Dk, Dv> {
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

/// Write (k, v, β, α) with one write strength per token and one decay per feature of the key, read
/// q.
template <int Dk, int Dv, int Features> struct KeyValueBetaFeatureDecay : QueryOutput<Dk, Dv> {
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

/// Write (k, v, β, α) with one write strength per token and one decay per key row, read q: Kimi
/// delta attention.
template <int Dk, int Dv> using KeyValueBetaVectorDecay = KeyValueBetaFeatureDecay<Dk, Dv, Dk>;

}  // namespace fw
