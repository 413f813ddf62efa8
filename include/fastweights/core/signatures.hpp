#pragma once

#include <fastweights/core/errors.hpp>
#include <fastweights/core/member_storage.hpp>
#include <stdexcept>
#include <string>

/// \file
/// The inputs and outputs of a memory with their run-time extents. Memories with the same signature
/// and scalar are interchangeable in a layer.
///
/// A signature of your own has three records with `names`, and functions that return their sizes.
/// A layer also needs the `roles` of what is written and read. QueryOutput has Read and Out:
///
///     template <int Dk, int Dv> struct KeyValueNovelty : fw::QueryOutput<Dk, Dv> {
///       template <class C> struct Write {
///         fw::vec<C, Dk> key;
///         fw::vec<C, Dv> value;
///         fw::num<C> novelty;
///         static constexpr auto names = fw::names("key", "value", "novelty");
///         static constexpr auto roles =
///             fw::roles(fw::Role::key, fw::Role::value, fw::Role::strength);
///       };
///       Write<fw::Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}}; }
///       // The same with keys of another size: FeatureMapped needs it.
///       template <int NewDk> using with_keys_of = KeyValueNovelty<NewDk, Dv>;
///     };
///
/// Without this base, write Read, Out, read() and out() in the same way. The rule's
/// assert_memory() reports what is missing. A MatrixRule, such as GatedDeltaRule, also takes
/// `key_rows` and `value_rows` from it.

namespace fw::inline FASTWEIGHTS_ABI {

/// The purpose of a member, which tells a layer how to compute it from a projection.
enum class Role {
  key,           ///< a key or a query: goes through the feature map
  value,         ///< used unchanged
  distribution,  ///< positive entries with sum 1: goes through a softmax
  strength,      ///< a write strength in (0, 1): goes through a sigmoid
  decay,         ///< a decay factor in (0, 1]: goes through sigmoid^(1/16)
  draw           ///< a number that the caller draws uniformly from [0, 1); has no gradient
};

template <class... Roles> constexpr std::array<Role, sizeof...(Roles)> roles(Roles... each) {
  return {each...};
}

/// The sizes of a memory, by name: `DeltaRule<float>({.key_size = 64, .value_size = 32})`.
/// Values are as large as keys unless `value_size` is given.
template <int Dk = Dynamic, int Dv = Dk> struct Sizes {
  Index key_size = Dk;                                      ///< d_k, the columns of W
  Index value_size = Dv == Dynamic ? key_size : Index(Dv);  ///< d_v, the rows of W
};

namespace detail {

/// Layers, feature maps and random sequences need the roles of a memory's inputs.
template <class Inputs> constexpr void assert_roles() {
  static_assert(
      requires { requires Inputs::roles.size() == Inputs::names.size(); },
      "signature: Write and Read must list the `roles` of all their members, e.g. "
      "fw::roles(fw::Role::key, fw::Role::value)");
}

/// Sizes given to a constructor must be positive and equal to the sizes fixed at compile time.
template <int Fixed> void check_size(std::string_view rule, std::string_view which, Index given) {
  if (given < 1 || (Fixed != Dynamic && given != Fixed))
    throw_invalid({rule, ": ", which, " is ", std::to_string(given), ", expected ",
                   Fixed == Dynamic ? std::string("at least 1") : std::to_string(Fixed)});
}

/// A size at run time that was not given.
inline void check_given(std::string_view rule, std::string_view which, Index given) {
  if (given == Dynamic)
    throw_invalid({rule, ": ", which, " is not given, expected ", rule, "({.", which, " = 64}) or ",
                   "sizes in the type"});
}

/// Checks a hyperparameter of any scalar type that must be positive.
template <class T>
void check_above_zero(std::string_view rule, std::string_view which, const T& given) {
  if (Eigen::numext::real(given) > 0) return;
  std::string text = "not positive";  // a scalar of automatic differentiation is no double
  if constexpr (requires { static_cast<double>(Eigen::numext::real(given)); })
    text = number_text(static_cast<double>(Eigen::numext::real(given)));
  throw_invalid({rule, ": ", which, " is ", text, ", expected above 0"});
}

}  // namespace detail

/// The read part of the signatures with one key per token: reads q (d_k) and gives y (d_v). A
/// signature of your own may derive from it; see above.
template <int Dk, int Dv> struct QueryOutput {
  static constexpr int key_rows = Dk, value_rows = Dv;  ///< Dynamic, or fixed
  Index dk = Dk;
  Index dv = Dv;
  Index features = dk;  ///< of a key in the memory: d_k, or the features of a feature map

  template <class C> struct Read {
    vec<C, Dk> query;
    static constexpr auto names = fw::names("query");
    static constexpr auto roles = fw::roles(Role::key);
  };
  template <class C> struct Out {
    vec<C, Dv> output;
    static constexpr auto names = fw::names("output");
  };

  Read<Extents> read() const { return {{dk, 1}}; }
  Out<Extents> out() const { return {{dv, 1}}; }
  Sizes<Dk, Dv> sizes() const { return {dk, dv}; }

  /// Throws std::invalid_argument unless both sizes are positive and agree with Dk and Dv.
  void check(std::string_view rule) const {
    if (Dk == Dynamic) detail::check_given(rule, "key_size", dk);
    detail::check_size<Dv>(rule, "d_v", dv);
    detail::check_size<Dk>(rule, "d_k", dk);
  }
};

/// Write (k, v), read q: linear attention, Hebbian memory, key-value cache.
template <int Dk, int Dv> struct KeyValue : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    static constexpr auto names = fw::names("key", "value");
    static constexpr auto roles = fw::roles(Role::key, Role::value);
  };
  template <int NewDk> using with_keys_of = KeyValue<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}}; }
};

/// Write (k, v, β) with one write strength per token, read q: the delta rule.
template <int Dk, int Dv> struct KeyValueBeta : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> beta;
    static constexpr auto names = fw::names("key", "value", "beta");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength);
  };
  template <int NewDk> using with_keys_of = KeyValueBeta<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}}; }
};

/// Write (k, v, β) with one write strength per value row, read q.
template <int Dk, int Dv> struct KeyValueVectorBeta : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Dv> beta;
    static constexpr auto names = fw::names("key", "value", "beta");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength);
  };
  template <int NewDk> using with_keys_of = KeyValueVectorBeta<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {this->dv, 1}}; }
};

/// Write a chunk of x, read with a chunk of q: memories of a signal. A chunk has any length; in a
/// sequence each chunk has `length` tokens.
template <int D> struct Chunks {
  Index d = D;       ///< rows of a chunk
  Index length = 1;  ///< tokens of a chunk

  template <class C> struct Write {
    /// X, d×any; in a sequence `length` columns are one write.
    mat<C, D, Dynamic> signal;
    static constexpr auto names = fw::names("signal");
    static constexpr auto roles = fw::roles(Role::value);
  };
  template <class C> struct Read {
    mat<C, D, Dynamic> query;  ///< one per column
    static constexpr auto names = fw::names("query");
    static constexpr auto roles = fw::roles(Role::key);
  };
  template <class C> struct Out {
    mat<C, D, Dynamic> output;  ///< one per query
    static constexpr auto names = fw::names("output");
  };

  Write<Extents> write() const { return {{d, length, true}}; }
  Read<Extents> read() const { return {{d, length, true}}; }
  Out<Extents> out() const { return {{d, length, true}}; }

  void check(std::string_view rule) const {
    detail::check_size<D>(rule, "d", d);
    detail::check_size<Dynamic>(rule, "the length of a chunk", length);
  }
};

/// As Chunks, with `draws` uniform random numbers per chunk for a memory that samples.
template <int D> struct DrawnChunks : Chunks<D> {
  Index draws = 1;  ///< random numbers per chunk

  template <class C> struct Write {
    /// X, d×any; in a sequence `length` columns are one write.
    mat<C, D, Dynamic> signal;
    mat<C, 1, Dynamic> draws;  ///< uniform in [0, 1)
    static constexpr auto names = fw::names("signal", "draws");
    static constexpr auto roles = fw::roles(Role::value, Role::draw);
  };

  Write<Extents> write() const { return {{this->d, this->length, true}, {1, draws}}; }
};

}  // namespace fw
