#pragma once

#include <fastweights/core/finite.hpp>
#include <fastweights/io/safetensors_reader.hpp>
#include <fastweights/networks/network.hpp>
#include <functional>
#include <set>

namespace fw::inline FASTWEIGHTS_ABI::models {

namespace detail {

// Without axes of length 1, which do not count.
template <class Axes> std::vector<Index> long_axes(const Axes& axes) {
  std::vector<Index> kept;
  for (const auto n : axes)
    if (n != 1) kept.push_back(Index(n));
  return kept;
}

// One line for each tensor that is missing, unexpected or of another shape, at most 20.
template <class S, class File>
std::string differences(const networks::Network<S>& network, const File& file,
                        const std::function<bool(const std::string&)>& is_ignored) {
  std::string problems;
  int count = 0;
  const auto note = [&](const std::string& name, const std::string& what) {
    if (++count <= 20) problems += "\n  " + name.substr(0, 100) + ": " + what;
  };
  std::set<std::string> known;
  for (const networks::Weight<S>& weight : network.weights) {
    known.insert(weight.name);
    if (!file.contains(weight.name)) {
      note(weight.name, "is missing");
    } else if (const io::Shape given = file.shape(weight.name);
               long_axes(given) != long_axes(weight.axes)) {
      const io::Shape expected(weight.axes.begin(), weight.axes.end());
      note(weight.name, "has shape " + io::detail::to_text(given) + ", expected " +
                            io::detail::to_text(expected));
    }
  }
  for (const std::string& name : file.names())
    if (!known.contains(name) && !(is_ignored && is_ignored(name)))
      note(name, "is in the file, but not expected");
  if (count > 20) problems += "\n  and " + std::to_string(count - 20) + " more";
  return problems;
}

}  // namespace detail

/// Sets the weights of a network from a file or folder (SafeTensors or Checkpoint) with the
/// published names. Strict: throws fw::io::SafeTensorsError with a list of all tensors that are
/// missing, unexpected or of another shape, and of a tensor with an entry that is not finite; the
/// network is unchanged then. Tensors for which
/// `is_ignored` is true may be there or not. float16, bfloat16, float32 and float64 are converted;
/// one tensor is in memory twice at a time. `progress(i, n)` is called before the i-th of n.
template <class S, class File>
void load_weights(networks::Network<S>& network, const File& file,
                  const std::function<bool(const std::string&)>& is_ignored = {},
                  const std::function<void(std::size_t, std::size_t)>& progress = {}) {
  const std::string problems = detail::differences(network, file, is_ignored);
  if (!problems.empty())
    fw::detail::raise<io::SafeTensorsError>("load_weights: the file does not fit the model:" +
                                            problems);
  std::vector<networks::Matrix<S>> loaded;
  loaded.reserve(network.weights.size());
  for (std::size_t i = 0; i < network.weights.size(); ++i) {
    if (progress) progress(i, network.weights.size());
    const networks::Weight<S>& weight = network.weights[i];
    const std::vector<S> entries = file.template values<S>(weight.name);
    using RowMajor = Eigen::Matrix<S, Dynamic, Dynamic, Eigen::RowMajor>;
    loaded.emplace_back(Eigen::Map<const RowMajor>(entries.data(), weight.rows(), weight.cols()));
    if (!fw::all_finite(loaded.back()))
      fw::detail::raise<io::SafeTensorsError>("load_weights: tensor " + weight.name.substr(0, 100) +
                                              " has an entry that is not finite");
  }
  for (std::size_t i = 0; i < loaded.size(); ++i) network.weights[i].value = std::move(loaded[i]);
}

}  // namespace fw::models
