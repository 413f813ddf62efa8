#pragma once

#include <fastweights/io/safetensors_writer.hpp>
#include <fastweights/models/checkpoint.hpp>
#include <fastweights/networks/network.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {

namespace detail {

template <class T, class S>
void add_as(io::SafeTensorsWriter& to, const std::string& name, const io::Shape& shape,
            const networks::Matrix<S>& weight) {
  std::vector<T> by_row;
  by_row.reserve(static_cast<std::size_t>(weight.size()));
  for (Index i = 0; i < weight.rows(); ++i)
    for (Index j = 0; j < weight.cols(); ++j) by_row.push_back(static_cast<T>(weight(i, j)));
  to.add(name, shape, by_row);
}

// Adds the weight with the type and shape that the tensor has in its file.
template <class S>
void add_weight(io::SafeTensorsWriter& to, const io::SafeTensors& file, const std::string& name,
                const networks::Matrix<S>& weight) {
  const io::Shape shape = file.shape(name);
  switch (file.dtype(name)) {
    case io::DType::F64:
      return add_as<double>(to, name, shape, weight);
    case io::DType::F32:
      return add_as<float>(to, name, shape, weight);
    case io::DType::F16:
      return add_as<Eigen::half>(to, name, shape, weight);
    case io::DType::BF16:
      return add_as<Eigen::bfloat16>(to, name, shape, weight);
    default:
      file.fail(name, "is not of a floating-point type that can be written");
  }
}

}  // namespace detail

/// Writes a folder like `source`, from which the network was loaded, with the network's weights:
/// the same files, names, types and shapes. Tensors that the network does not have are copied, and
/// so are config.json and other files beside the weights. One shard is in memory at a time. Rounds
/// to the type in the file, so what was loaded without loss is written back bit for bit.
///
/// Throws CheckpointError if `folder` is the source itself, and std::invalid_argument if a weight
/// is not set, compact, or not in the source. Files that are there already are replaced.
template <class S>
void save_folder(const networks::Network<S>& network, const Checkpoint& source,
                 const std::filesystem::path& folder) {
  std::map<std::string, const networks::Weight<S>*> weights;
  for (const networks::Weight<S>& weight : network.weights) {
    if (weight.value.size() == 0)
      fw::detail::throw_invalid({"save_folder: ", weight.name, " is not set, or compact"});
    if (!source.contains(weight.name))
      fw::detail::throw_invalid({"save_folder: the source has no ", weight.name});
    weights[weight.name] = &weight;
  }
  source.copy_other_files(folder);
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
    to.write(folder / name);
  });
}

}  // namespace fw::models
