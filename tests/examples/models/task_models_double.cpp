#include <models/algorithmic/task_model_of.hpp>

template class LanguageModel<double>;
template std::unique_ptr<SequenceModel> make_task_model<double>(const std::string&,
                                                                TaskModelOptions);
