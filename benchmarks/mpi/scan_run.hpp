#pragma once

#include <unistd.h>

#include <fastweights/math/random.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/mpi/backward.hpp>

#include "machine.hpp"

/// Unlike MPI_Barrier it leaves the processor to the others.
inline void wait_for_all() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; !done; usleep(100)) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

/// Until the last rank has ended.
template <class F> double seconds_of(const F& f) {
  wait_for_all();
  const double start = machine::wall_clock();
  f();
  wait_for_all();
  return machine::wall_clock() - start;
}

/// A scan of the delta rule in float, `steps` tokens of some heads on this rank.
class ScanRun {
 public:
  using Index = fw::Index;
  using Method = fw::mpi::Method;
  using Memory = fw::DeltaRule<float>;

  ScanRun(Index d, Index heads, Index steps)
      : m_({.key_size = d}), states_(static_cast<std::size_t>(heads), fw::initial_state(m_)) {
    fw::Random random(1);
    const Index columns = heads * steps;
    for (auto* each : {&k_, &v_, &q_, &y_}) each->resize(d, columns);
    for (auto* each : {&k_, &v_, &q_}) random.fill(*each);
    k_.colwise().normalize();
    beta_.setConstant(columns, 0.5f);
  }

  void scan(MPI_Comm comm, Method method) {
    fw::mpi::scan(m_, std::span(states_), {k_, v_, beta_}, {q_}, {y_}, comm, method);
  }
  /// A scan and its backward pass. The outputs are their own gradients.
  void backward(MPI_Comm comm, Method method) {
    checkpoints_.resize(states_.size());
    for (auto* each : {&dk_, &dv_, &dq_}) each->setZero(k_.rows(), k_.cols());
    dbeta_.setZero(k_.cols());
    fw::mpi::scan(m_, std::span(states_), {k_, v_, beta_}, {q_}, {y_}, std::span(checkpoints_),
                  comm, method);
    fw::mpi::backward(m_, std::span(checkpoints_), {k_, v_, beta_}, {q_}, {y_}, std::span(states_),
                      {dk_, dv_, dbeta_}, {dq_}, comm);
  }

 private:
  Memory m_;
  std::vector<fw::StateOf<Memory>> states_;
  std::vector<fw::Checkpoints<Memory>> checkpoints_;
  Eigen::MatrixXf k_, v_, q_, y_, dk_, dv_, dq_;
  Eigen::RowVectorXf beta_, dbeta_;
};

inline const char* name_of(fw::mpi::Method method) {
  using fw::mpi::Method;
  return method == Method::chain      ? "chain"
         : method == Method::segments ? "segments"
         : method == Method::heads    ? "heads"
                                      : "automatic";
}
