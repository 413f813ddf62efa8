#pragma once

#include <Eigen/Core>
#include <fastweights/core/memory.hpp>
#include <fastweights/core/record.hpp>
#include <type_traits>

/// \file
/// Calls with a mistake, which do not compile: each overload here takes what no other overload
/// takes, and says in one sentence what the call needs. A user's own `step` is called as before.

namespace fw::inline FASTWEIGHTS_ABI {

// Compilers list what is declared first before the overloads below.
template <Memory M>
void scan(const M& m, StateOf<M>& state, WriteSequence<M> inputs, ReadSequence<M> queries,
          OutSequence<M> outputs);

namespace detail {

// True if an argument is the record that a call takes. A list in braces has no type, so that T is
// the record then. A record of another memory does not lack braces.
template <class T, class Expected>
inline constexpr bool fits = std::is_convertible_v<const T&, Expected> || Record<T>;

// True if an argument is what belongs in braces.
template <class T>
inline constexpr bool is_bare =
    std::is_arithmetic_v<T> || std::is_base_of_v<Eigen::EigenBase<T>, T>;

template <class T, class Expected>
concept FitsOrIsBare = fits<T, Expected> || is_bare<T>;
// Some arguments belong in braces. If all do, the overloads with Bare are for them.
template <bool... IsBare>
concept SomeAreBare = (IsBare || ...) && !(IsBare && ...);

// Where no argument has braces, a user's own `step` may take what is given, and its parameters may
// be conversions, such as Eigen::Ref. So every parameter of ours is a conversion, the memory
// included: an overload whose first parameter is the memory itself is better.
struct AMemory {
  template <Memory M> AMemory(const M&);  // NOLINT: implicit by design
};
struct AState {
  template <Record S> AState(const S&);  // NOLINT: implicit by design
};
struct Bare {
  Bare() = default;
  template <class T>
  requires is_bare<T> Bare(const T&);  // NOLINT: implicit by design
};

template <class T> inline constexpr bool never = !std::is_same_v<T, T>;

}  // namespace detail

/// Does not compile: braces are missing.
template <class T = void>
void write(detail::AMemory, detail::AState, detail::Bare, detail::Bare = {}, detail::Bare = {},
           detail::Bare = {}, detail::Bare = {}, detail::Bare = {}) {
  static_assert(detail::never<T>,
                "fastweights: braces are missing: fw::write(memory, state, {what is written})");
}

/// Does not compile: braces are missing.
template <GivesErrors M, class W = WriteToken<M>, class E = ErrorToken<M>>
requires detail::SomeAreBare<detail::is_bare<W>, detail::is_bare<E>> &&
    detail::FitsOrIsBare<W, WriteToken<M>> && detail::FitsOrIsBare<E, ErrorToken<M>>
void write(const M&, StateOf<M>&, const W&, const E&) {
  static_assert(
      detail::never<M>,
      "fastweights: braces are missing: fw::write(memory, state, {what is written}, {error})");
}

/// Does not compile: all braces are missing.
template <class T = void>
void read(detail::AMemory, detail::AState, detail::Bare, detail::Bare, detail::Bare = {},
          detail::Bare = {}) {
  static_assert(detail::never<T>,
                "fastweights: braces are missing: fw::read(memory, state, {queries}, {outputs})");
}
/// Does not compile: braces are missing.
template <Memory M, class R = ReadToken<M>, class Y = OutToken<M>>
requires detail::SomeAreBare<detail::is_bare<R>, detail::is_bare<Y>> &&
    detail::FitsOrIsBare<R, ReadToken<M>> && detail::FitsOrIsBare<Y, OutToken<M>>
void read(const M&, const StateOf<M>&, const R&, const Y&) {
  static_assert(detail::never<M>,
                "fastweights: braces are missing: fw::read(memory, state, {queries}, {outputs})");
}

/// Does not compile: all braces are missing.
template <class T = void>
void step(detail::AMemory, detail::AState, detail::Bare, detail::Bare, detail::Bare,
          detail::Bare = {}, detail::Bare = {}, detail::Bare = {}, detail::Bare = {},
          detail::Bare = {}) {
  static_assert(detail::never<T>,
                "fastweights: braces are missing: fw::step(memory, state, {what is written}, "
                "{queries}, {outputs})");
}
/// Does not compile: braces are missing.
template <Memory M, class W = WriteToken<M>, class R = ReadToken<M>, class Y = OutToken<M>>
requires detail::SomeAreBare<detail::is_bare<W>, detail::is_bare<R>, detail::is_bare<Y>> &&
    detail::FitsOrIsBare<W, WriteToken<M>> && detail::FitsOrIsBare<R, ReadToken<M>> &&
    detail::FitsOrIsBare<Y, OutToken<M>>
void step(const M&, StateOf<M>&, const W&, const R&, const Y&) {
  static_assert(detail::never<M>,
                "fastweights: braces are missing: fw::step(memory, state, {what is written}, "
                "{queries}, {outputs})");
}

/// Does not compile: all braces are missing.
template <class T = void>
void scan(detail::AMemory, detail::AState, detail::Bare, detail::Bare, detail::Bare,
          detail::Bare = {}, detail::Bare = {}, detail::Bare = {}, detail::Bare = {},
          detail::Bare = {}) {
  static_assert(detail::never<T>,
                "fastweights: braces are missing: fw::scan(memory, state, {what is written}, "
                "{queries}, {outputs})");
}
/// Does not compile: braces are missing.
template <Memory M, class W = WriteSequence<M>, class R = ReadSequence<M>, class Y = OutSequence<M>>
requires detail::SomeAreBare<detail::is_bare<W>, detail::is_bare<R>, detail::is_bare<Y>> &&
    detail::FitsOrIsBare<W, WriteSequence<M>> && detail::FitsOrIsBare<R, ReadSequence<M>> &&
    detail::FitsOrIsBare<Y, OutSequence<M>>
void scan(const M&, StateOf<M>&, const W&, const R&, const Y&) {
  static_assert(detail::never<M>,
                "fastweights: braces are missing: fw::scan(memory, state, {what is written}, "
                "{queries}, {outputs})");
}

/// Does not compile: all braces are missing.
template <class T = void>
void checked_step(detail::AMemory, detail::AState, detail::Bare, detail::Bare, detail::Bare,
                  detail::Bare = {}, detail::Bare = {}, detail::Bare = {}, detail::Bare = {},
                  detail::Bare = {}, detail::Bare = {}) {
  static_assert(
      detail::never<T>,
      "fastweights: braces are missing: fw::checked_step(memory, state, {what is written}, "
      "{queries}, {outputs})");
}
/// Does not compile: all braces are missing.
template <class T = void>
void checked_scan(detail::AMemory, detail::AState, detail::Bare, detail::Bare, detail::Bare,
                  detail::Bare = {}, detail::Bare = {}, detail::Bare = {}, detail::Bare = {},
                  detail::Bare = {}, detail::Bare = {}) {
  static_assert(
      detail::never<T>,
      "fastweights: braces are missing: fw::checked_scan(memory, state, {what is written}, "
      "{queries}, {outputs})");
}
/// Does not compile: all braces are missing.
template <class T = void>
void chunked_scan(detail::AMemory, detail::AState, detail::Bare, detail::Bare, detail::Bare,
                  detail::Bare = {}, detail::Bare = {}, detail::Bare = {}, detail::Bare = {},
                  detail::Bare = {}, detail::Bare = {}) {
  static_assert(
      detail::never<T>,
      "fastweights: braces are missing: fw::chunked_scan(memory, state, {what is written}, "
      "{queries}, {outputs})");
}
/// Does not compile: all braces are missing.
template <class T = void>
void parallel_scan(detail::AMemory, detail::AState, detail::Bare, detail::Bare, detail::Bare,
                   detail::Bare = {}, detail::Bare = {}, detail::Bare = {}, detail::Bare = {},
                   detail::Bare = {}, detail::Bare = {}) {
  static_assert(
      detail::never<T>,
      "fastweights: braces are missing: fw::parallel_scan(memory, state, {what is written}, "
      "{queries}, {outputs}, pieces)");
}

/// Does not compile: the rule has no chunkwise form.
template <Memory M>
requires(!Chunkable<M>) void chunked_scan(const M&, StateOf<M>&, WriteSequence<M>, ReadSequence<M>,
                                          OutSequence<M>, Index = 64) {
  static_assert(Chunkable<M>,
                "fastweights: chunked_scan needs a rule with a chunkwise form (fw::Chunkable); use "
                "fw::scan, which every rule has");
}

/// Does not compile: the writes of the rule do not compose.
template <Memory M>
requires(!Mergeable<M>) void parallel_scan(const M&, StateOf<M>&, WriteSequence<M>, ReadSequence<M>,
                                           OutSequence<M>, Index) {
  static_assert(Mergeable<M>,
                "fastweights: parallel_scan needs a rule whose writes compose (fw::Mergeable); use "
                "fw::scan, which every rule has");
}

}  // namespace fw
