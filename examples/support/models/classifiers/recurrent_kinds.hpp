#pragma once

#include "models/kinds.hpp"

inline const Kinds recurrent_kinds{{"rnn", "plain RNN"},     {"irnn", "IRNN"},
                                   {"lstm", "LSTM"},         {"delta", "delta rule"},
                                   {"fast", "fast weights"}, {"norm", "without fast weights"}};
