#include <models/algorithmic/task_mixers.hpp>

template AnyLayer<double> recurrent_mixer<double>(const std::string&, const TaskModelOptions&);
