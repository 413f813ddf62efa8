#pragma once

#include <fastweights/core/finite.hpp>
#include <fastweights/models/tied_head.hpp>
#include <functional>
#include <optional>
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
  const networks::Weight<S>* tied = tied_table(network);
  for (const networks::Weight<S>& weight : network.weights) {
    const std::string name = name_in_file(weight, tied, file);
    known.insert(name);
    if (!file.contains(name)) {
      note(weight.name, "is missing");
    } else if (const io::Shape given = file.shape(name);
               long_axes(given) != long_axes(weight.axes)) {
      const io::Shape expected(weight.axes.begin(), weight.axes.end());
      note(weight.name, "has shape " + io::detail::to_text(given) + ", expected " +
                            io::detail::to_text(expected));
    }
  }
  for (const std::string& name : file.names())
    if (!known.contains(name) && !(is_ignored && is_ignored(name)) &&
        !is_tied_head(name, tied, file))
      note(name, "is in the file, but not expected");
  if (count > 20) problems += "\n  and " + std::to_string(count - 20) + " more";
  return problems;
}

template <class S, class File>
void load(networks::Weight<S>& weight, const File& file, const std::string& name,
          std::optional<networks::WeightType> type) {
  const std::vector<S> entries = file.template values<S>(name);
  const Index n = Index(entries.size());
  if (fw::detail::first_outside({entries.data(), n, 1, n, fw::detail::scalar_kind<S>()}, {}) >= 0)
    file.fail(name, "has an entry that is not finite");
  using RowMajor = Eigen::Matrix<S, Dynamic, Dynamic, Eigen::RowMajor>;
  weight.set(Eigen::Map<const RowMajor>(entries.data(), weight.rows(), weight.cols()), type);
}

}  // namespace detail

/// The tensors that load accepts besides those of the network.
struct LoadOptions {
  /// Tensors that may be there or not.
  std::function<bool(const std::string&)> is_ignored = {};
  /// Called before the i-th of n tensors.
  std::function<void(std::size_t i, std::size_t n)> progress = {};
  /// Makes the matrices of linear maps and embeddings quantised, each as soon as it is loaded.
  std::optional<networks::WeightType> weights = {};
};

/// Sets the weights of a network from a file or folder (SafeTensors or Checkpoint) with the
/// published names. Strict: throws fw::io::SafeTensorsError with a list of all tensors that are
/// missing, unexpected or of another shape, or for a tensor with an entry that is not finite; the
/// network is unchanged then. A tied model's table may be there as lm_head.weight too, or only (see
/// tied_head.hpp). float16, bfloat16, float32 and float64 are converted; one tensor is
/// in memory twice at a time.
template <class S, class File>
void load_weights(networks::Network<S>& network, const File& file,
                  const LoadOptions& options = {}) {
  const std::string problems = detail::differences(network, file, options.is_ignored);
  if (!problems.empty())
    fw::detail::raise<io::SafeTensorsError>(std::string(file.origin()) +
                                            ": does not fit the model:" + problems);
  const std::vector<bool> quantisable = network.quantisable();
  const networks::Weight<S>* tied = detail::tied_table(network);
  std::vector<networks::Weight<S>> loaded;
  for (const auto& weight : network.weights)
    loaded.push_back({{}, weight.name, weight.axes, weight.initialiser, nullptr, weight.centre});
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    if (options.progress) options.progress(i, loaded.size());
    const std::string name = detail::name_in_file(network.weights[i], tied, file);
    detail::load(loaded[i], file, name, quantisable[i] ? options.weights : std::nullopt);
  }
  network.weights = std::move(loaded);
}

}  // namespace fw::models
