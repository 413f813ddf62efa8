#include "round_trip.hpp"

#include <algorithm>
#include <fastweights/models/save.hpp>

#include "support/temporary_folder.hpp"

std::string round_trip_problem(const fw::networks::Network<float>& network,
                               const std::filesystem::path& directory) {
  const TemporaryFolder parent;
  const std::filesystem::path to = parent / "copy";
  const auto folder = fw::models::Checkpoint::read(directory);
  fw::models::save_folder(network, folder, to);
  const auto copy = fw::models::Checkpoint::read(to);
  if (copy.names() != folder.names()) return "the saved folder has other tensors";
  for (const std::string& name : folder.names()) {
    const auto a = folder.data(name), b = copy.data(name);
    if (copy.shape(name) != folder.shape(name) || copy.dtype(name) != folder.dtype(name) ||
        !std::equal(a.begin(), a.end(), b.begin(), b.end()))
      return name + " differs in the saved folder";
  }
  return {};
}
