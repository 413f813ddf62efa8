#pragma once

#include <algorithm>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/finite.hpp>
#include <fastweights/io/folder_update.hpp>
#include <fastweights/io/safetensors_writer.hpp>
#include <fastweights/models/checkpoint.hpp>
#include <fastweights/models/tied_head.hpp>
#include <fastweights/networks/network.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI::models {

namespace detail {

// Calls f with a number of a floating-point type of files. Whether the type is one.
template <class F> bool with_float(io::DType dtype, const F& f) {
  switch (dtype) {
    case io::DType::F64:
      return f(double()), true;
    case io::DType::F32:
      return f(float()), true;
    case io::DType::F16:
      return f(Eigen::half()), true;
    case io::DType::BF16:
      return f(Eigen::bfloat16()), true;
    default:
      return false;
  }
}

// Throws unless the type in the file has a finite number for every entry.
template <class S>
void check_fits(const Checkpoint& source, const std::string& name,
                const networks::Matrix<S>& weight) {
  const auto check = [&]<class T>(T) {
    for (const S entry : weight.reshaped())
      if (!fw::detail::is_finite(static_cast<double>(static_cast<T>(entry))))
        fw::detail::throw_invalid({"save_folder: ", name, " has the entry ",
                                   fw::detail::number_text(static_cast<double>(entry)),
                                   ", expected a finite number of the type in the file"});
  };
  if (!with_float(source.dtype(name), check))
    source.fail(name, "is not of a floating-point type that can be written");
}

// Adds the weight with the type and shape that the tensor has in its file.
template <class S>
void add_weight(io::SafeTensorsWriter& to, const io::SafeTensors& file, const std::string& name,
                const networks::Matrix<S>& weight) {
  with_float(file.dtype(name), [&]<class T>(T) {
    std::vector<T> by_row;
    by_row.reserve(static_cast<std::size_t>(weight.size()));
    for (Index i = 0; i < weight.rows(); ++i)
      for (Index j = 0; j < weight.cols(); ++j) by_row.push_back(static_cast<T>(weight(i, j)));
    to.add(name, file.shape(name), by_row);
  });
}

// True if a name is that of an index or of weights, as published models have them.
inline bool is_of_model(const std::string& name) {
  constexpr std::string_view shard = "model-00000-of-00000.safetensors";
  if (name == "model.safetensors" || name == "model.safetensors.index.json") return true;
  return name.size() == shard.size() &&
         std::equal(name.begin(), name.end(), shard.begin(), [](char given, char pattern) {
           return pattern == '0' ? given >= '0' && given <= '9' : given == pattern;
         });
}

inline std::set<std::string> files_to_write(const Checkpoint& source) {
  std::set<std::string> names;
  for (const std::string& name : source.other_files()) names.insert(name);
  source.for_each_file(
      [&](const std::string& name, const io::SafeTensors&) { names.insert(name); });
  return names;
}

// Calls f for what stands in the folder, if there is one.
template <class F> void for_each_entry(const std::filesystem::path& folder, const F& f) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    f(entry->path().filename().string(), *entry);
}

}  // namespace detail

/// Throws CheckpointError if `save_folder` cannot write to a folder: it is the source itself, or
/// something that is no file has the name of a file to write or to remove. For programs that train
/// first.
inline void check_output(const Checkpoint& source, const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::equivalent(source.folder(), folder, error))
    fw::detail::raise<CheckpointError>(folder.string() +
                                       ": is the source, expected another folder");
  const std::set<std::string> names = detail::files_to_write(source);
  detail::for_each_entry(folder, [&](const std::string& name, const auto& entry) {
    std::error_code ignored;
    const auto type = entry.symlink_status(ignored).type();
    if ((names.contains(name) || detail::is_of_model(name)) &&
        type != std::filesystem::file_type::regular && type != std::filesystem::file_type::symlink)
      fw::detail::raise<CheckpointError>((folder / name).string() +
                                         ": is no regular file, and cannot be replaced");
  });
}

/// Writes a folder like `source`, from which the network was loaded, with the network's weights:
/// the same files, names, types and shapes. Tensors that the network does not have are copied, and
/// so are config.json and other files beside the weights. One shard is in memory at a time. Rounds
/// to the type in the file, so what was loaded without loss is written back bit for bit.
///
/// Afterwards the folder has the whole model or, after an error, the model that it had. Files that
/// are there already are replaced, and weights and an index that do not belong to the new model are
/// removed: model.safetensors, its index and model-00001-of-00002.safetensors. Symbolic links are
/// replaced, never followed. If the program is killed or the system fails while the new files are
/// renamed, the folder has no model.safetensors and no index, so no reader takes it for a model:
/// see io/folder_update.hpp.
///
/// Throws CheckpointError as `check_output` does, SafeTensorsError if a file cannot be written or a
/// tensor of the network has no floating-point type there, and std::invalid_argument if a weight is
/// not set, quantised, not in the source, or has an entry that is not finite in the type of the
/// file.
template <class S>
void save_folder(const networks::Network<S>& network, const Checkpoint& source,
                 const std::filesystem::path& folder) {
  std::map<std::string, const networks::Weight<S>*> weights;
  const networks::Weight<S>* tied = detail::tied_table(network);
  for (const networks::Weight<S>& weight : network.weights) {
    if (weight.value.size() == 0)
      fw::detail::throw_invalid({"save_folder: ", weight.name, " is not set, or quantised"});
    const std::string name = detail::name_in_file(weight, tied, source);
    if (!source.contains(name))
      fw::detail::throw_invalid({"save_folder: the source has no ", weight.name});
    detail::check_fits(source, name, weight.value);
    weights[name] = &weight;
  }
  // A copy of the table must not fall behind.
  if (tied != nullptr && source.contains(detail::head_name)) {
    detail::check_fits(source, detail::head_name, tied->value);
    weights[detail::head_name] = tied;
  }
  check_output(source, folder);
  io::FolderUpdate update(folder, source.entry());
  for (const std::string& name : source.other_files()) update.copy(name, source.folder() / name);
  source.for_each_file([&](const std::string& name, const io::SafeTensors& file) {
    io::SafeTensorsWriter to;
    for (const auto& [key, value] : file.metadata()) to.metadata(key, value);
    if (!file.metadata().contains("format")) to.metadata("format", "pt");  // transformers reads it
    for (const std::string& tensor : file.names()) {
      const auto found = weights.find(source.name_of(tensor));
      if (found != weights.end())
        detail::add_weight(to, file, tensor, found->second->value);
      else
        to.add_bytes(tensor, file.dtype(tensor), file.shape(tensor), file.data(tensor));
    }
    update.add(name, to);
  });
  const std::set<std::string> names = detail::files_to_write(source);
  const auto remove_old = [&](const std::string& name) {
    if (detail::is_of_model(name) && !names.contains(name)) update.remove(name);
  };
  detail::for_each_entry(folder, [&](const std::string& name, const auto&) { remove_old(name); });
  remove_old("model.safetensors");  // another process may write it meanwhile
  remove_old("model.safetensors.index.json");
  update.commit();
}

}  // namespace fw::models
