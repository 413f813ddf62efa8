#include "training/capacity_trainer.hpp"

template class CapacityTrainer<float>;
