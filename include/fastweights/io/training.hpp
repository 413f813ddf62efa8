#pragma once

#include <fastweights/io/weights.hpp>
#include <fastweights/training/adamw.hpp>
#include <map>

namespace fw::inline FASTWEIGHTS_ABI::io {

/// Texts that are saved with a checkpoint, such as the settings of a run.
using Metadata = std::map<std::string, std::string>;

namespace detail {

template <class S> bool has_negative(const fw::detail::Object& model) {
  bool found = false;
  fw::detail::visit_parameters<S>(std::array{model}, [&](const fw::detail::Leaf* leaf) {
    found = found || (leaf->entries<S>() < S(0)).any();
  });
  return found;
}

}  // namespace detail

#if FASTWEIGHTS_FILES
/// Writes a checkpoint of training to one file: the parameters as "model.…", the moments of the
/// optimiser as "first.…" and "second.…", its number of steps as "steps". On disk when this
/// returns; before, `path` is the old file (see SafeTensorsWriter::write). Training that resumes
/// from it gives the same bits, if the batch of a step depends on its number alone.
///
///     fw::io::save_training(model, trainer.optimiser(), "run.safetensors", {{"seed", "1"}});
template <Record Model>
void save_training(const Model& model, const AdamW<Model>& optimiser,
                   const std::filesystem::path& path, const Metadata& metadata = {}) {
  SafeTensorsWriter writer;
  add_parameters(writer, model, "model");
  add_parameters(writer, optimiser.first, "first");
  add_parameters(writer, optimiser.second, "second");
  writer.add("steps", std::int64_t{optimiser.steps});
  for (const auto& [key, text] : metadata) writer.metadata(key, text);
  writer.write(path);
}

/// Reads such a file into a model and an optimiser of the same shapes, and gives its metadata. The
/// optimiser keeps its options. Throws SafeTensorsError for another file, and changes nothing then.
template <Record Model>
Metadata load_training(Model& model, AdamW<Model>& optimiser, const std::filesystem::path& path) {
  const SafeTensors file = SafeTensors::read(path);
  Model loaded = model;
  AdamW<Model> resumed = optimiser;
  load_parameters(loaded, file, "model");
  load_parameters(resumed.first, file, "first");
  load_parameters(resumed.second, file, "second");
  const auto steps = file.values<std::int64_t>("steps");
  const auto refuse = [&](const char* what) {
    fw::detail::raise<SafeTensorsError>(path.string() + ": " + what);
  };
  if (steps.size() != 1 || steps[0] < 0 || steps[0] > max_count)
    refuse("tensor \"steps\": expected one count of at least 0");
  if (!all_finite(resumed.first) || !all_finite(resumed.second))
    refuse("the moments of the optimiser are not finite");
  if (detail::has_negative<fw::detail::ParameterScalar<Model>>(fw::detail::object(resumed.second)))
    refuse("the second moment of the optimiser is negative");
  resumed.steps = steps[0];
  Metadata metadata(file.metadata().begin(), file.metadata().end());
  model = std::move(loaded);
  optimiser = std::move(resumed);
  return metadata;
}
#endif

}  // namespace fw::io
