#include "models/algorithmic/task_mixers.hpp"

template AnyLayer<float> recurrent_mixer<float>(const std::string&, const TaskModelOptions&);
