// A function of training/processes.hpp that programs without networks do not compile.

#include "training/processes.hpp"

#ifdef FASTWEIGHTS_EXAMPLES_MPI

#include <fastweights/mpi/training.hpp>
#include <stdexcept>

struct Processes::Sums {
  fw::mpi::GradientSum gradients{MPI_COMM_WORLD};
};

fw::GradientReady Processes::join(fw::Trainer<fw::networks::Network<float>>& trainer) {
  if (count_ == 1) return {};
  if (sums_) throw std::logic_error("Processes::join: a second trainer");
  sums_ = std::make_shared<Sums>();
  fw::mpi::join(trainer, sums_->gradients);
  return sums_->gradients.adder();
}

#else

struct Processes::Sums {};

fw::GradientReady Processes::join(fw::Trainer<fw::networks::Network<float>>&) { return {}; }

#endif
