#include "training/experiments/capacity_trainer.hpp"

template class CapacityTrainer<float>;
