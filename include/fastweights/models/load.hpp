#pragma once

#include <fastweights/io/safetensors_reader.hpp>
#include <fastweights/networks/network.hpp>
#include <functional>
#include <set>

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Sets the weights of a network from a file of the published names. Strict: a tensor that is
/// missing, unexpected or of another shape makes it throw fw::io::SafeTensorsError with the list of
/// all of these, and the network is unchanged. Tensors for which `is_ignored` is true may be there
/// or not. Axes of length 1 do not count. float16, bfloat16, float32 and float64 are converted.
template <class S>
void load_weights(networks::Network<S>& network, const io::SafeTensors& file,
                  const std::function<bool(const std::string&)>& is_ignored = {}) {
  std::string problems;
  const auto note = [&](const std::string& name, const std::string& what) {
    problems += "\n  " + name + ": " + what;
  };
  std::set<std::string> known;
  for (const networks::Weight<S>& weight : network.weights) {
    known.insert(weight.name);
    if (!file.contains(weight.name)) {
      note(weight.name, "is missing");
      continue;
    }
    std::vector<Index> given, expected;
    for (const auto n : file.shape(weight.name))
      if (n != 1) given.push_back(Index(n));
    for (const Index n : weight.axes)
      if (n != 1) expected.push_back(n);
    if (given != expected)
      note(weight.name, "has shape " + io::detail::to_text(file.shape(weight.name)) +
                            ", expected " + io::detail::to_text(io::Shape(weight.axes.begin(), weight.axes.end())));
  }
  for (const std::string& name : file.names())
    if (!known.contains(name) && !(is_ignored && is_ignored(name)))
      note(name, "is in the file, but not expected");
  if (!problems.empty())
    fw::detail::raise<io::SafeTensorsError>("load_weights: the file does not fit the model:" +
                                            problems);
  for (networks::Weight<S>& weight : network.weights) {
    const std::vector<S> entries = file.template values<S>(weight.name);
    using RowMajor = Eigen::Matrix<S, Dynamic, Dynamic, Eigen::RowMajor>;
    weight.value =
        Eigen::Map<const RowMajor>(entries.data(), weight.value.rows(), weight.value.cols());
  }
}

}  // namespace fw::models
