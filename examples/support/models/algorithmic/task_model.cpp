#include "models/algorithmic/task_model_of.hpp"

template std::unique_ptr<SequenceModel> make_task_model<float>(const std::string&,
                                                               TaskModelOptions);
