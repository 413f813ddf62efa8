// Compares every file of reference vectors with the library and prints one line per file. The
// environment variable FASTWEIGHTS_REFERENCE_DIR names the folder, tests/data by default. Files of
// rules that the library does not have are listed as skipped.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include "case.hpp"
#include "data_folder.hpp"
#include "rule_run.hpp"

namespace {

std::map<std::string, reference::Test> all_tests() {
  std::map<std::string, reference::Test> tests;
  for (const auto& cases :
       {reference::memory_cases(), reference::delta_family_cases(), reference::state_space_cases(),
        reference::attention_cases(), reference::test_time_cases()})
    for (const auto& [stem, given] : cases)
      tests[stem] = [given = given](reference::Case& file) { reference::run(file, given); };
  for (const auto& more :
       {reference::typed_memory_tests(), reference::rwkv_tests(), reference::mamba3_mimo_tests(),
        reference::stick_breaking_tests(), reference::cyclic_flow_tests(),
        reference::programmer_tests(), reference::recurrent_layer_tests(), reference::layer_tests(),
        reference::feature_map_tests(), reference::infformer_tests(),
        reference::fast_weights_rnn_tests(), reference::hypernetwork_tests(),
        reference::synthetic_tests()})
    tests.insert(more.begin(), more.end());
  return tests;
}

// Prints the file's line. Returns whether all errors are within the limits.
bool passes(const std::filesystem::path& path, const reference::Test& test) {
  reference::Case file(fw::io::SafeTensors::read(path));
  test(file);
  char gradient[32] = "-";
  if (file.has_gradient()) std::snprintf(gradient, sizeof gradient, "%.2e", file.gradient_error());
  std::printf("reference %s: forward %.2e gradient %s%s\n", path.stem().c_str(),
              file.forward_error(), gradient, file.right() ? "" : "  FAILED");
  return file.right();
}

}  // namespace

int main() {
  const char* from_environment = std::getenv("FASTWEIGHTS_REFERENCE_DIR");
  const std::filesystem::path folder =
      from_environment ? from_environment : FASTWEIGHTS_REFERENCE_DIR;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::sort(files.begin(), files.end());

  const auto tests = all_tests();
  int passed = 0, failed = 0, skipped = 0;
  for (const auto& path : files) {
    const auto test = tests.find(path.stem().string());
    if (test == tests.end()) {
      std::printf("reference %s: skipped\n", path.stem().c_str());
      ++skipped;
      continue;
    }
    try {
      ++(passes(path, test->second) ? passed : failed);
    } catch (const std::exception& error) {
      std::printf("reference %s: FAILED: %s\n", path.stem().c_str(), error.what());
      ++failed;
    }
  }
  // The project's own folder must have all files.
  if (from_environment == nullptr)
    for (const auto& [rule, test] : tests)
      if (!std::filesystem::exists(folder / (rule + ".safetensors"))) {
        std::printf("reference %s: FAILED: no file\n", rule.c_str());
        ++failed;
      }
  std::printf("%d passed, %d failed, %d skipped in %s\n", passed, failed, skipped, folder.c_str());
  return failed == 0 && passed > 0 ? 0 : 1;
}
