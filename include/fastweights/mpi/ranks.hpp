#pragma once

// Without these, mpi.h declares the C++ classes that MPI 3 removed, and programs link them.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fastweights/core/errors.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI::mpi {

using Eigen::Index;

/// The tag of all messages of the library.
inline constexpr int tag = 0x6677;

namespace detail {

// MPI ends the program at an error by itself, unless its user wants to see the code.
inline void check(int code, const char* what) {
  if (code != MPI_SUCCESS)
    fw::detail::raise<std::runtime_error>(std::string(what) + ": MPI error " +
                                          std::to_string(code));
}

// MPI counts in int: calls f(first byte, bytes) for pieces of at most 1 GiB.
template <class F> void for_each_piece(Index bytes, const F& f) {
  constexpr Index most = Index(1) << 30;
  for (Index first = 0; first < bytes; first += most)
    f(first, static_cast<int>(std::min(most, bytes - first)));
}

// True if requests have ended; with `wait`, once they have.
inline bool ended(std::vector<MPI_Request>& requests, bool wait) {
  const auto count = static_cast<int>(requests.size());
  int all = 1;
  if (wait)
    check(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  else
    check(MPI_Testall(count, requests.data(), &all, MPI_STATUSES_IGNORE), "MPI_Testall");
  return all != 0;
}

// After an error nobody may wait for messages that perhaps never come: the program is about to end.
// Their buffers stay until then.
template <class T> void abandon(T& buffers) { static_cast<void>(new T(std::move(buffers))); }

// A number of at least 0 for a text: FNV-1a. Ranks that send texts of different length would need
// another message for the lengths.
inline long long digest(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return static_cast<long long>(hash >> 1U);
}

[[noreturn]] inline void fail_to_agree(std::string_view who, std::string_view what,
                                       std::string_view mine) {
  fw::detail::throw_invalid({who, ": ", what, " on this rank: ", mine.substr(0, 400),
                             "; another rank has others, expected the same on all"});
}

// Runs a check and keeps its error. Without exceptions an error ends the program.
class FirstError {
 public:
#if FASTWEIGHTS_EXCEPTIONS
  template <class Check> explicit FirstError(const Check& check) {
    try {
      check();
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  explicit operator bool() const { return error_ != nullptr; }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
#else
  template <class Check> explicit FirstError(const Check& check) { check(); }
  explicit operator bool() const { return false; }
  void rethrow() const {}
#endif
};

}  // namespace detail

/// The processes of a communicator, in order.
class Ranks {
 public:
  /// The ranks of a communicator, which must outlive this.
  explicit Ranks(MPI_Comm comm) : comm_(comm) {
    detail::check(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    detail::check(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
  }

  /// The communicator.
  MPI_Comm comm() const { return comm_; }
  /// This rank, 0 … size − 1.
  int rank() const { return rank_; }
  /// The number of ranks.
  int size() const { return size_; }
  /// True if this is rank 0.
  bool is_first() const { return rank_ == 0; }
  /// True if this is the last rank.
  bool is_last() const { return rank_ + 1 == size_; }
  /// MPI_PROC_NULL where there is none.
  int before() const { return is_first() ? MPI_PROC_NULL : rank_ - 1; }
  /// MPI_PROC_NULL where there is none.
  int after() const { return is_last() ? MPI_PROC_NULL : rank_ + 1; }

  /// Sends bytes to rank `to`. Returns when they may be changed.
  void send(const std::byte* from, Index bytes, int to) const {
    detail::for_each_piece(bytes, [&](Index first, int count) {
      detail::check(MPI_Send(from + first, count, MPI_BYTE, to, tag, comm_), "MPI_Send");
    });
  }
  /// The bytes must stay until detail::ended(requests).
  std::vector<MPI_Request> begin_to_send(const std::byte* from, Index bytes, int to) const {
    std::vector<MPI_Request> requests;
    detail::for_each_piece(bytes, [&](Index first, int count) {
      detail::check(MPI_Isend(from + first, count, MPI_BYTE, to, tag, comm_,
                              &requests.emplace_back(MPI_REQUEST_NULL)),
                    "MPI_Isend");
    });
    return requests;
  }
  /// Begins to receive what rank `from` sends. The bytes must stay until detail::ended(requests).
  std::vector<MPI_Request> begin_to_receive(std::byte* into, Index bytes, int from) const {
    std::vector<MPI_Request> requests;
    detail::for_each_piece(bytes, [&](Index first, int count) {
      detail::check(MPI_Irecv(into + first, count, MPI_BYTE, from, tag, comm_,
                              &requests.emplace_back(MPI_REQUEST_NULL)),
                    "MPI_Irecv");
    });
    return requests;
  }
  /// Receives what rank `from` sends.
  void receive(std::byte* into, Index bytes, int from) const {
    detail::for_each_piece(bytes, [&](Index first, int count) {
      detail::check(MPI_Recv(into + first, count, MPI_BYTE, from, tag, comm_, MPI_STATUS_IGNORE),
                    "MPI_Recv");
    });
  }
  /// Sends the bytes of rank `root` to all others.
  void broadcast(std::byte* data, Index bytes, int root) const {
    detail::for_each_piece(bytes, [&](Index first, int count) {
      detail::check(MPI_Bcast(data + first, count, MPI_BYTE, root, comm_), "MPI_Bcast");
    });
  }

  /// A number that must be the same on all ranks, or the digest of a text that must be.
  struct Common {
    std::string_view what;  ///< its name in errors
    long long value = 0;    ///< this rank's
    std::string text = {};  ///< this rank's, for errors; of a number empty

    /// A number.
    Common(std::string_view name, long long number) : what(name), value(number) {}
    /// A text.
    Common(std::string_view name, std::string of)
        : what(name), value(detail::digest(of)), text(std::move(of)) {}
  };
  /// Calls check() on every rank, and throws on every rank if one of them throws, or if one of the
  /// numbers is not the same on all of them. All ranks call this together.
  template <std::size_t N, class Check>
  void agree(std::string_view who, const Common (&numbers)[N], const Check& check) const {
    const detail::FirstError error(check);
    std::array<long long, 1 + 2 * N> least{error ? 0 : 1};
    for (std::size_t i = 0; i < N; ++i) {
      least[1 + 2 * i] = numbers[i].value;
      least[2 + 2 * i] = -numbers[i].value;
    }
    detail::check(MPI_Allreduce(MPI_IN_PLACE, least.data(), static_cast<int>(least.size()),
                                MPI_LONG_LONG, MPI_MIN, comm_),
                  "MPI_Allreduce");
    error.rethrow();
    if (least[0] == 0) fw::detail::throw_invalid({who, ": another rank has an error"});
    for (std::size_t i = 0; i < N; ++i)
      if (const auto low = least[1 + 2 * i], high = -least[2 + 2 * i]; low != high) {
        if (!numbers[i].text.empty()) detail::fail_to_agree(who, numbers[i].what, numbers[i].text);
        fw::detail::throw_invalid({who, ": ", numbers[i].what, " is ",
                                   std::to_string(numbers[i].value), " on this rank, and from ",
                                   std::to_string(low), " to ", std::to_string(high),
                                   " on all, expected the same"});
      }
  }

 private:
  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
};

}  // namespace fw::mpi
