#pragma once

// Without these, mpi.h declares the C++ classes that MPI 3 removed, and programs link them.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <array>
#include <exception>
#include <fastweights/core/errors.hpp>
#include <limits>
#include <stdexcept>
#include <string>

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

}  // namespace detail

/// The processes of a communicator, in order.
class Ranks {
 public:
  explicit Ranks(MPI_Comm comm) : comm_(comm) {
    detail::check(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    detail::check(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
  }

  MPI_Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_first() const { return rank_ == 0; }
  bool is_last() const { return rank_ + 1 == size_; }
  /// MPI_PROC_NULL where there is none.
  int before() const { return is_first() ? MPI_PROC_NULL : rank_ - 1; }
  int after() const { return is_last() ? MPI_PROC_NULL : rank_ + 1; }

  /// Sends `bytes`; returns when `to` takes them, if they are many.
  void send(const void* from, Index bytes, int to) const {
    detail::check(MPI_Send(from, count(bytes), MPI_BYTE, to, tag, comm_), "MPI_Send");
  }
  void receive(void* into, Index bytes, int from) const {
    detail::check(MPI_Recv(into, count(bytes), MPI_BYTE, from, tag, comm_, MPI_STATUS_IGNORE),
                  "MPI_Recv");
  }

  /// Calls check() on every rank, and throws on every rank if one of them throws, or if `given`,
  /// which `what` names, is not the same on all of them. All ranks call this together.
  template <class Check>
  void agree(std::string_view who, std::string_view what, Index given, const Check& check) const {
    std::exception_ptr error;
    try {
      check();
    } catch (...) {
      error = std::current_exception();
    }
    std::array<long long, 3> least{error ? 0 : 1, given, -static_cast<long long>(given)};
    detail::check(MPI_Allreduce(MPI_IN_PLACE, least.data(), 3, MPI_LONG_LONG, MPI_MIN, comm_),
                  "MPI_Allreduce");
    if (error) std::rethrow_exception(error);
    if (least[0] == 0)
      fw::detail::throw_invalid({who, ": the arguments of another rank are not valid"});
    if (least[1] != -least[2])
      fw::detail::throw_invalid({who, ": ", what, " is ", std::to_string(given),
                                 " on this rank, and from ", std::to_string(least[1]), " to ",
                                 std::to_string(-least[2]), " on all, expected the same"});
  }

 private:
  static int count(Index bytes) {
    if (bytes > std::numeric_limits<int>::max())
      fw::detail::throw_invalid(
          {"a message of ", std::to_string(bytes), " bytes, MPI takes less than 2^31"});
    return static_cast<int>(bytes);
  }

  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
};

}  // namespace fw::mpi
