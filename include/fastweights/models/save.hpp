#pragma once

#include <fastweights/core/errors.hpp>
#include <fastweights/core/finite.hpp>
#include <fastweights/io/safetensors_writer.hpp>
#include <fastweights/models/checkpoint.hpp>
#include <fastweights/models/tied_head.hpp>

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

}  // namespace detail

/// Writes a folder like `source`, from which the network was loaded, with the network's weights:
/// the same files, names, types and shapes. Tensors that the network does not have are copied, and
/// so are config.json and other files beside the weights. One shard is in memory at a time. Rounds
/// to the type in the file, so what was loaded without loss is written back bit for bit.
///
/// Throws CheckpointError if `folder` is the source itself, SafeTensorsError if a tensor of the
/// network has no floating-point type there, and std::invalid_argument if a weight is not set,
/// compact, not in the source, or has an entry that is not finite in the type of the file. Files
/// that are there already are replaced.
template <class S>
void save_folder(const networks::Network<S>& network, const Checkpoint& source,
                 const std::filesystem::path& folder) {
  std::map<std::string, const networks::Weight<S>*> weights;
  const networks::Weight<S>* tied = detail::tied_table(network);
  for (const networks::Weight<S>& weight : network.weights) {
    if (weight.value.size() == 0)
      fw::detail::throw_invalid({"save_folder: ", weight.name, " is not set, or compact"});
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
